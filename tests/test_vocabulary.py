from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specdec_cli.errors import EXIT_MODEL, ModelError
from specdec_cli.vocabulary import Vocabulary, check_same, first_difference

TARGET = Vocabulary("big.gguf", "gpt2", [b"a", b"b", b"\xe2\x82", b"[d]"], bos=0, add_bos=False)
DRAFT = replace(TARGET, source="small.gguf")


def test_equal_vocabularies_fit() -> None:
    check_same(TARGET, DRAFT)
    assert first_difference(TARGET, DRAFT) == ""


@pytest.mark.parametrize("padding", [[b"[PAD4]"], [b"[PAD4]", b"[PAD5]"]])
def test_padding_at_the_end_of_either_fits(padding: list[bytes]) -> None:
    padded = [*TARGET.tokens, *padding]
    check_same(TARGET, replace(DRAFT, tokens=padded))
    check_same(replace(TARGET, tokens=padded), DRAFT)


@pytest.mark.parametrize("silent", ["bos", "add_bos"])
def test_a_setting_that_a_file_does_not_have_is_no_difference(silent: str) -> None:
    settings: dict[str, Any] = {silent: None}
    check_same(TARGET, replace(DRAFT, **settings))
    check_same(replace(TARGET, **settings), DRAFT)


def test_the_token_that_begins_a_text_matters_only_where_one_is_added() -> None:
    other = replace(DRAFT, bos=2)
    check_same(TARGET, other)
    adding = replace(TARGET, add_bos=True)
    assert first_difference(adding, replace(other, add_bos=True)) == "its beginning-of-text token is 2, the target's 0"


@pytest.mark.parametrize(
    ("draft", "difference"),
    [
        (replace(DRAFT, model="llama"), "its tokenizer is llama, the target's gpt2"),
        (replace(DRAFT, model=""), "its tokenizer is unknown, the target's gpt2"),
        (replace(DRAFT, tokens=[b"a", b"B", b"c", b"[d]"]), "token 1 is 'B', the target's is 'b'"),
        (replace(DRAFT, tokens=[b"a", b"b", b"\xe2\x82", b"[D]", b"e"]), "token 3 is '[D]', the target's is '[d]'"),
        (replace(DRAFT, tokens=[b"a", b"b", b"\xe2\x83", b"[d]"]), "token 2 is "),
        (replace(DRAFT, add_bos=True), "its add-bos setting is True, the target's False"),
    ],
)
def test_a_real_difference_is_refused_with_both_files_and_the_first_difference(
    draft: Vocabulary, difference: str
) -> None:
    with pytest.raises(ModelError) as caught:
        check_same(TARGET, draft)
    assert caught.value.message.startswith("draft small.gguf does not fit target big.gguf: " + difference)
    assert caught.value.exit_code == EXIT_MODEL
    assert "-d lookup" in caught.value.hint
