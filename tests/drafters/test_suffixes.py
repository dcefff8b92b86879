from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from specdec_cli.drafters.suffixes import LINKS, Follower, Match, SuffixAutomaton, joined


def slow_match(text: Sequence[int], sequences: Iterable[Sequence[int]]) -> Match:
    """The longest end of `text` that one of `sequences` has with a token after it, the last such place of the last one.

    Places count the sequences one after the other, with a separator behind each.
    """
    best, offset = Match(), 0
    for sequence in sequences:
        for place in range(1, len(sequence)):
            length = 0
            while length < min(place, len(text)) and sequence[place - 1 - length] == text[-1 - length]:
                length += 1
            if length >= max(best.length, 1):
                best = Match(length, offset + place)
        offset += len(sequence) + 1
    return best


def random_texts() -> list[list[int]]:
    rng = np.random.default_rng(5)
    texts = [rng.integers(0, vocabulary, 150).tolist() for vocabulary in (2, 3, 4, 9, 60) for _ in range(4)]
    phrase = rng.integers(0, 4, 12).tolist()
    return [*texts, [*phrase, 9, *phrase, 1, *phrase[3:], *phrase, *phrase], [0, 1] * 15, [7, 7, 8] * 6]


@pytest.mark.parametrize("text", random_texts())
def test_the_longest_earlier_occurrence_is_found_after_every_token_and_of_several_the_last(text: list[int]) -> None:
    index = SuffixAutomaton()
    for size, token in enumerate(text, start=1):
        index.append(token)
        assert index.longest() == slow_match(text[:size], [text[:size]])


def test_in_long_runs_the_length_is_right_and_the_place_is_one_of_them() -> None:
    run = 5 * LINKS
    for text in ([1] * run, [*[1] * run, 2, *[1] * (run - 3)], [*[1] * run, 2, *[1] * run, 3, 1, 1], [1, 2] * run):
        index, match = SuffixAutomaton(text), SuffixAutomaton(text).longest()
        assert match.length == slow_match(text, [text]).length
        assert index.tokens[match.place - match.length : match.place] == text[len(text) - match.length :]
        assert match.place < len(text)


@pytest.mark.parametrize("seed", range(8))
def test_another_text_is_followed_through_sequences_that_are_never_joined(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vocabulary = 2 + seed % 4
    sequences = [rng.integers(0, vocabulary, rng.integers(0, 30)).tolist() for _ in range(6)]
    follower, text = Follower(joined(sequences)), []
    for token in rng.integers(0, vocabulary + 1, 200).tolist():
        text.append(token)
        follower.read(token)
        assert follower.match() == slow_match(text, sequences)


def test_an_empty_index_has_nothing() -> None:
    follower = Follower(SuffixAutomaton())
    follower.read(0)
    assert follower.match() == SuffixAutomaton().longest() == SuffixAutomaton([0]).longest() == Match()


class Token(int):
    """A token that counts how often it is looked up or compared."""

    uses = 0

    def __hash__(self) -> int:
        Token.uses += 1
        return int(self)

    def __eq__(self, other: object) -> bool:
        Token.uses += 1
        return int(self) == other

    def __ne__(self, other: object) -> bool:
        Token.uses += 1
        return int(self) != other


TEXTS = {
    "random over 2": np.random.default_rng(1).integers(0, 2, 6000).tolist(),
    "random over 5000": np.random.default_rng(2).integers(0, 5000, 6000).tolist(),
    "one run": [1] * 6000,
    "runs": ([1] * 99 + [2]) * 60,
    "a phrase again and again": list(range(100)) * 60,
    "one more each time": [token for size in range(108) for token in (*[1] * size, 2)],
    "a token before every other": [token for other in range(3000) for token in (0, 1 + other)],
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_token_costs_the_same_however_long_the_text_is(name: str) -> None:
    text = TEXTS[name]
    index, other = SuffixAutomaton(), Follower(joined([text]))
    Token.uses = 0
    for token in text:
        index.append(Token(token))
        index.longest()
        other.read(Token(token))
        other.match()
    assert Token.uses <= 14 * len(text)
