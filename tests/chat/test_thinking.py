"""Thoughts are told apart from answers wherever tokens split their tags, and no text gets lost."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from specdec_cli.chat.thinking import KNOWN, THINK, Part, Tags, ThoughtStream, find_tags
from specdec_cli.core.text import Segment


def parted(pieces: Sequence[str], *, inside: Tags | None = None) -> tuple[str, str]:
    """What of `pieces` is thought and what is said; their order and marks are checked on the way."""
    stream: ThoughtStream[int] = ThoughtStream([THINK], inside=inside)
    parts: list[Part[int]] = []
    for mark, piece in enumerate(pieces):
        parts += stream.feed([Segment(piece, mark)])
    parts += stream.finish()
    assert "".join(part.segment.text for part in parts) == "".join(pieces), "nothing is lost"
    for mark, piece in enumerate(pieces):
        assert "".join(part.segment.text for part in parts if part.segment.mark == mark) == piece
    thought, said = ("".join(p.segment.text for p in parts if p.thought is kind) for kind in (True, False))
    return thought, said


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("<think>why</think>\n\nsaid", "<think>why</think>\n\n"),
        ("\n <think>why</think>said", "\n <think>why</think>"),
        ("<think></think>said", "<think></think>"),
        ("<think>a</think>\n<think>b</think>said <think>x</think>", "<think>a</think>\n<think>b</think>"),
        ("<think>a < b </thin </think>said", "<think>a < b </thin </think>"),
        ("<think>never closed </think", "<think>never closed </think"),
        ("<thin air>", ""),
        ("<", ""),
        ("  said", ""),
        ("said <think>is a tag</think>", ""),
        ("</think>said", ""),
        ("", ""),
        (" \n", ""),
    ],
)
def test_tags_are_found_however_the_text_is_cut(text: str, thought: str) -> None:
    expected = (thought, text.removeprefix(thought))
    assert parted([text]) == expected
    assert parted(list(text)) == expected
    for first, second in itertools.combinations(range(len(text)), 2):
        assert parted([text[:first], text[first:second], text[second:]]) == expected


def test_a_thought_that_the_prompt_opened_ends_at_its_closing_tag() -> None:
    assert parted(list("why</think>\nsaid"), inside=THINK) == ("why</think>\n", "said")


def test_an_answer_is_not_held_back_once_it_has_begun() -> None:
    stream: ThoughtStream[int] = ThoughtStream([THINK])
    assert stream.feed([Segment("a", 0)]) == [Part(Segment("a", 0), thought=False)]
    assert stream.feed([Segment(" <think", 1)]) == [Part(Segment(" <think", 1), thought=False)]


def test_a_thought_is_shown_as_it_comes_but_for_what_may_be_its_end() -> None:
    stream: ThoughtStream[int] = ThoughtStream([THINK])
    stream.feed([Segment("<think>", 0)])
    assert stream.feed([Segment("why</t", 1)]) == [Part(Segment("why", 1), thought=True)]
    assert stream.open


def test_the_template_says_which_tags_count_and_the_common_ones_always_do() -> None:
    assert find_tags("{{ x }}") == [THINK]
    assert find_tags("a [THINK] b") == [THINK, Tags("[THINK]", "[/THINK]")]
    assert len({tags.opening for tags in KNOWN}) == len(KNOWN)
