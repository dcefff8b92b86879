from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli.errors import EXIT_MODEL, ModelError
from specdec_cli.llama.chat_template import Message, render_messages
from specdec_cli.llama.tokenizer import Tokenizer
from tests.engine import loaded
from tests.toy_gguf import BOS, TEMPLATE, attention_toy

MESSAGES: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi [/INST]"}]


def _render(folder: Path, template: str | None, messages: list[Message] = MESSAGES) -> str:
    path = attention_toy().having({"tokenizer.chat_template": template}).write(folder / "model.gguf")
    with loaded(path) as weights:
        return render_messages(weights, Tokenizer(weights), messages)


def test_the_models_own_template_asks_for_the_next_message(tmp_path: Path) -> None:
    rendered = _render(tmp_path, TEMPLATE)
    assert rendered == "[system]Be brief.<|im_end|>\n[user]Hi [/INST]<|im_end|>\n[assistant]"


def test_a_template_can_use_the_models_control_tokens(tmp_path: Path) -> None:
    assert _render(tmp_path, "{{ bos_token }}{{ messages[0]['content'] }}{{ eos_token }}") == (
        "<|bos|>Be brief.<|endoftext|>"
    )


@pytest.mark.parametrize("adds", [True, False])
def test_a_template_that_holds_the_beginning_of_text_does_not_double_it(tmp_path: Path, adds: bool) -> None:
    toy = attention_toy().having(
        {"tokenizer.chat_template": "{{ bos_token }}" + TEMPLATE, "tokenizer.ggml.add_bos_token": adds}
    )
    with loaded(toy.write(tmp_path / "model.gguf")) as weights:
        tokenizer = Tokenizer(weights)
        tokens = tokenizer.encode(render_messages(weights, tokenizer, MESSAGES))
    assert tokens[0] == BOS
    assert tokens.count(BOS) == 1


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (None, "has no chat template"),
        ("{% for %}", "Expected an expression"),
        ("{{ nosuch(1) }}", "'nosuch' is undefined"),
        ("{{ raise_exception('System role\nnot supported') }}", "System role not supported"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{% for i in range(10000000000) %}x{% endfor %}", "Range too big"),
        ("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}", "recursion"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{# nothing #}\n", "makes an empty prompt"),
    ],
)
def test_a_template_that_cannot_be_used_is_told_in_one_line(tmp_path: Path, template: str | None, reason: str) -> None:
    with pytest.raises(ModelError) as caught:
        _render(tmp_path, template)
    assert reason in caught.value.message
    assert f"target {tmp_path / 'model.gguf'}" in caught.value.message
    assert len(caught.value.message.splitlines()) == 1
    assert "--raw" in caught.value.hint
    assert caught.value.exit_code == EXIT_MODEL
