from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specdec_cli.errors import ModelError
from specdec_cli.vocabulary import Ends, Vocabulary, find_overlap, first_difference

TARGET = Vocabulary("big.gguf", "gpt2", [b"a", b"b", b"\xe2\x82", b"[d]"], bos=0, add_bos=False)
DRAFT = replace(TARGET, source="small.gguf")


def test_equal_vocabularies_fit() -> None:
    assert first_difference(TARGET, DRAFT) == ""
    assert first_difference(TARGET, DRAFT) == ""


@pytest.mark.parametrize("padding", [[b"[PAD4]"], [b"[PAD4]", b"[PAD5]"]])
def test_padding_at_the_end_of_either_fits(padding: list[bytes]) -> None:
    padded = [*TARGET.tokens, *padding]
    assert first_difference(TARGET, replace(DRAFT, tokens=padded)) == ""
    assert first_difference(replace(TARGET, tokens=padded), DRAFT) == ""


@pytest.mark.parametrize("silent", ["bos", "add_bos"])
def test_a_setting_that_a_file_does_not_have_is_no_difference(silent: str) -> None:
    settings: dict[str, Any] = {silent: None}
    assert first_difference(TARGET, replace(DRAFT, **settings)) == ""
    assert first_difference(replace(TARGET, **settings), DRAFT) == ""


def test_the_token_that_begins_a_text_matters_only_where_one_is_added() -> None:
    other = replace(DRAFT, bos=2)
    assert first_difference(TARGET, other) == ""
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
def test_a_real_difference_is_told_in_words(draft: Vocabulary, difference: str) -> None:
    assert first_difference(TARGET, draft).startswith(difference)


NORMAL, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 3, 4, 5, 6


def vocabulary(model: str, *tokens: tuple[str, int], source: str = "x.gguf") -> Vocabulary:
    spelled = [token.encode() for token, _ in tokens]
    return Vocabulary(source, model, spelled, bos=None, add_bos=None, kinds=[kind for _, kind in tokens])


GPT2 = vocabulary(
    "gpt2",
    ("a", NORMAL),
    ("Ġhi", NORMAL),
    ("âĤ¬", NORMAL),
    ("âĤ", NORMAL),
    ("Ċ", NORMAL),
    ("<|end|>", CONTROL),
    ("</s>", NORMAL),
    ("é", USER_DEFINED),
    ("[PAD]", UNUSED),
)
SENTENCEPIECE = vocabulary(
    "llama",
    ("<unk>", 2),
    ("</s>", CONTROL),
    ("<0x0A>", BYTE),
    ("<0x61>", BYTE),
    ("▁hi", NORMAL),
    ("€", NORMAL),
    ("a", NORMAL),
    ("é", NORMAL),
    ("[PAD]", UNUSED),
    ("<|end|>", CONTROL),
    ("a", NORMAL),
)


def test_tokens_of_two_tokenizers_are_matched_by_what_they_print() -> None:
    overlap = find_overlap(GPT2, SENTENCEPIECE)
    assert overlap.to_target == [-1, -1, 4, -1, 1, 2, 0, 7, -1, 5, -1]
    assert overlap.to_draft == [6, 4, 5, -1, 2, 9, -1, 7, -1]
    assert overlap.of_target == pytest.approx(5 / 7)
    assert overlap.of_draft == pytest.approx(5 / 5)


def test_it_is_the_same_map_from_the_other_side() -> None:
    one, other = find_overlap(GPT2, SENTENCEPIECE), find_overlap(SENTENCEPIECE, GPT2)
    assert (one.to_draft, one.to_target) == (other.to_target, other.to_draft)


def test_the_control_tokens_of_the_target_are_known_by_name() -> None:
    assert find_overlap(SENTENCEPIECE, GPT2).names == {0: b"<unk>", 1: b"</s>", 9: b"<|end|>"}
    assert find_overlap(GPT2, SENTENCEPIECE).names == {5: b"<|end|>"}


def test_a_single_byte_has_a_token_where_the_draft_has_one() -> None:
    by_byte = find_overlap(GPT2, SENTENCEPIECE).byte_tokens
    assert {byte: token for byte, token in enumerate(by_byte) if token >= 0} == {0x0A: 2, 0x61: 6}


@pytest.mark.parametrize("model", ["rwkv", "llama", ""])
def test_letters_of_gpt2_mean_bytes_in_no_other_tokenizer(model: str) -> None:
    draft = vocabulary(model, ("a", NORMAL), ("Ġhi", NORMAL), ("Ċ", NORMAL))
    assert find_overlap(GPT2, draft).to_target == [0, -1, -1]


def test_what_is_no_spelling_of_bytes_is_not_shared() -> None:
    odd = vocabulary("gpt2", ("a", NORMAL), ("Ω", NORMAL), ("hi there", NORMAL), ("<0xZZ>", BYTE), ("<0x100>", BYTE))
    assert find_overlap(odd, odd).to_target == [0, -1, -1, -1, -1]


def test_files_without_kinds_of_tokens_are_matched_too() -> None:
    plain = replace(GPT2, kinds=())
    assert find_overlap(plain, plain).to_target == list(range(9))
    assert find_overlap(plain, plain).names == {}


def test_a_draft_that_knows_a_part_of_the_target_is_all_shared() -> None:
    overlap = find_overlap(GPT2, vocabulary("gpt2", ("Ċ", NORMAL), ("<|end|>", CONTROL), ("Ġhi", NORMAL)))
    assert overlap.of_draft == 1
    assert overlap.of_target == pytest.approx(2 / 7)
    assert overlap.to_target == [4, 5, 1]


BYTES = [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]


@pytest.mark.parametrize("size", [2300, 2340])
def test_two_that_share_little_more_than_bytes_are_refused_with_the_number(size: int) -> None:
    target = vocabulary("llama", *BYTES, *((f"t{index}", NORMAL) for index in range(size)), source="big.gguf")
    draft = vocabulary("llama", *BYTES, *((f"d{index}", NORMAL) for index in range(size)), source="small.gguf")
    if size == 2300:
        assert find_overlap(target, draft).of_draft == pytest.approx(256 / 2556)
        return
    with pytest.raises(ModelError) as caught:
        find_overlap(target, draft)
    assert caught.value.message == (
        "draft small.gguf does not fit target big.gguf: they share 256 tokens, 9.9% of the smaller vocabulary"
    )
    assert "under 10%" in caught.value.hint


def test_an_empty_vocabulary_is_no_division_by_zero() -> None:
    with pytest.raises(ModelError, match="share 0 tokens"):
        find_overlap(GPT2, vocabulary("gpt2", ("<|end|>", CONTROL)))


MISTRAL = vocabulary("llama", ("a", NORMAL), ("<s>", CONTROL), ("</s>", CONTROL))
CHAT = vocabulary("gpt2", ("a", NORMAL), ("<|endoftext|>", CONTROL), ("<|im_end|>", CONTROL), ("</s>", NORMAL))


def test_ends_of_other_names_stand_for_each_other() -> None:
    overlap = find_overlap(CHAT, MISTRAL).with_ends(Ends(turn=2, text=1), Ends(turn=2, text=2))
    assert overlap.to_target == [0, -1, 2], "what ends a draft's turn ends the target's"
    assert overlap.to_draft == [0, 2, 2, -1], "and the draft reads both as its own end"
    back = find_overlap(MISTRAL, CHAT).with_ends(Ends(turn=2, text=2), Ends(turn=2, text=1))
    assert back.to_target == [0, -1, 2, -1]
    assert back.to_draft == [0, -1, 2]


def test_names_decide_before_meanings_do() -> None:
    swapped = vocabulary("gpt2", ("a", NORMAL), ("<|im_end|>", CONTROL), ("<|endoftext|>", CONTROL))
    overlap = find_overlap(CHAT, swapped)
    assert overlap.with_ends(Ends(turn=2, text=1), Ends(turn=2, text=1)) == overlap


def test_a_model_without_ends_has_none_to_stand_for() -> None:
    overlap = find_overlap(CHAT, MISTRAL)
    assert overlap.with_ends(Ends(None, None), Ends(turn=2, text=2)) == overlap
    assert overlap.with_ends(Ends(turn=2, text=1), Ends(None, None)) == overlap


def test_the_notice_says_how_much_of_a_text_the_draft_can_propose() -> None:
    overlap = find_overlap(GPT2, SENTENCEPIECE)
    notice = overlap.notice([0, 1, 1, 3])
    assert "with 71% of the target's tokens and 75% of those of an ordinary text; it cannot guess the others" in notice
    assert overlap.notice([0, 1]).endswith("and 100% of those of an ordinary text")
