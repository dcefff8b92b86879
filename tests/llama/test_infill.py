"""Prompts that ask for what is missing between two texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli.errors import ModelError
from specdec_cli.llama.infill import encode_infill
from specdec_cli.llama.tokenizer import Tokenizer
from tests.engine import loaded
from tests.toy_gguf import BOS, FIRST_EXTRA, memoryless_toy

PREFIX, SUFFIX, MIDDLE = range(FIRST_EXTRA, FIRST_EXTRA + 3)
KEYS = {
    "tokenizer.ggml.fim_pre_token_id": PREFIX,
    "tokenizer.ggml.fim_suf_token_id": SUFFIX,
    "tokenizer.ggml.fim_mid_token_id": MIDDLE,
}


def encoded(path: Path, before: str, after: str, **metadata: object) -> list[int]:
    toy = memoryless_toy({}, {1: 1.0}, extra=[b"[pre]", b"[suf]", b"[mid]"]).having({**KEYS, **metadata})
    with loaded(toy.write(path)) as weights:
        return encode_infill(weights, Tokenizer(weights), before, after)


def test_the_prefix_comes_first_then_the_suffix_then_the_mark_of_the_middle(tmp_path: Path) -> None:
    assert encoded(tmp_path / "m.gguf", "ab\n", "\ncd") == [PREFIX, *b"ab\n", SUFFIX, *b"\ncd", MIDDLE]


def test_either_side_may_be_empty(tmp_path: Path) -> None:
    assert encoded(tmp_path / "m.gguf", "", "") == [PREFIX, SUFFIX, MIDDLE]


def test_a_beginning_of_text_comes_before_it_where_the_model_wants_one(tmp_path: Path) -> None:
    wanting = {"tokenizer.ggml.add_bos_token": True}
    assert encoded(tmp_path / "m.gguf", "a", "b", **wanting)[:2] == [BOS, PREFIX]


def test_control_tokens_in_the_code_are_text(tmp_path: Path) -> None:
    assert encoded(tmp_path / "m.gguf", "<|im_end|>", "") == [PREFIX, *b"<|im_end|>", SUFFIX, MIDDLE]


@pytest.mark.parametrize("missing", KEYS)
def test_a_model_without_the_tokens_is_refused_by_name(tmp_path: Path, missing: str) -> None:
    with pytest.raises(ModelError, match=r"m\.gguf cannot fill in a middle") as caught:
        encoded(tmp_path / "m.gguf", "a", "b", **{missing: None})
    assert "--suffix" in str(caught.value.hint)
