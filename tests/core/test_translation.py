from __future__ import annotations

import pytest

from specdec_cli.core.translation import Step, Transcript, Translator

TEXTS = {0: b"a", 1: b"b", 2: b"ab", 3: "€".encode(), 4: "€".encode()[:2], 5: "€".encode()[2:], 6: b"", 7: b"a\xffab"}
NAMES = {8: b"<turn>", 9: b"<ab>"}
TO_DRAFT = [97, -1, -1, -1, -1, -1, -1, -1, 500, -1]
LETTERS = [byte if byte < 128 else byte + 1000 if byte != 0x82 else -1 for byte in range(256)]


def cut(text: bytes) -> list[int]:
    """A tokenizer of whole characters that has one token for `ab`, which is 300."""
    return [300 if part == "#" else ord(part) for part in text.decode().replace("ab", "#")]


def translator(beginnings: tuple[int | None, int | None] = (None, None)) -> Translator:
    return Translator(TO_DRAFT, LETTERS, NAMES, TEXTS.__getitem__, cut, beginnings)


@pytest.mark.parametrize(
    ("token", "read"),
    [
        (0, (97,)),
        (1, (98,)),
        (2, (300,)),
        (3, (0x20AC,)),
        (6, ()),
        (8, (500,)),
        (9, (ord("<"), 300, ord(">"))),
    ],
)
def test_a_token_is_the_one_of_the_same_text_or_what_spells_it(token: int, read: tuple[int, ...]) -> None:
    assert translator().read(token) == read


def test_half_a_character_is_read_as_the_bytes_that_the_draft_has() -> None:
    assert translator().read(4) == (0xE2 + 1000,)
    assert translator().read(5) == (0xAC + 1000,)
    assert translator().read(7) == (97, 0xFF + 1000, 300)


def test_a_token_is_worked_out_once() -> None:
    answers = iter([[5]])
    once = Translator(TO_DRAFT, LETTERS, NAMES, TEXTS.__getitem__, lambda _: next(answers))
    assert once.read(1) == once.read(1) == (5,)


def test_a_token_behind_those_of_the_file_is_read_by_its_text() -> None:
    assert Translator((), LETTERS, {}, {40: b"b"}.__getitem__, cut).read(40) == (98,)


def test_one_by_one_every_token_is_a_step() -> None:
    assert list(translator().one_by_one([0, 1, 8, 6])) == [(1, (97,)), (1, (98,)), (1, (500,)), (1, ())]


def test_at_once_what_stands_between_control_tokens_is_cut_by_the_draft_itself() -> None:
    steps = list(translator().at_once([0, 1, 8, 4, 5, 1, 9]))
    assert steps == [(2, [300]), (1, (500,)), (3, [0x20AC, 98]), (1, (ord("<"), 300, ord(">")))]
    assert list(translator().at_once([])) == []


@pytest.mark.parametrize(
    ("beginnings", "step"),
    [((None, None), (0, ())), ((8, None), (1, ())), ((None, 7), (0, (7,))), ((8, 7), (1, (7,))), ((9, 7), (0, (7,)))],
)
def test_a_text_begins_as_the_draft_wants_it_and_only_once(
    beginnings: tuple[int | None, int | None], step: Step
) -> None:
    assert translator(beginnings).begin((8, 0)) == step


def test_a_transcript_goes_back_to_the_end_of_a_step() -> None:
    transcript = Transcript()
    assert transcript.is_new
    for step in ((0, (5,)), (1, (10,)), (3, (11, 12)), (1, ()), (1, (13, 14, 15))):
        transcript.append(step)
    assert (transcript.length, transcript.tokens) == (6, [5, 10, 11, 12, 13, 14, 15])
    for length, kept, tokens in (
        (7, 6, [5, 10, 11, 12, 13, 14, 15]),
        (5, 5, [5, 10, 11, 12]),
        (3, 1, [5, 10]),
        (0, 0, [5]),
        (-1, 0, []),
    ):
        transcript.cut(length)
        assert (transcript.length, transcript.tokens) == (kept, tokens)
    assert transcript.is_new
