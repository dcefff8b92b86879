from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Noise
from specdec_cli.core.past import Past
from specdec_cli.drafters.lookup import LONGEST, SHORTEST, LookupDrafter
from tests.enumeration import support

CHANCE = Noise(0).round(0, 0)


def proposed(context: Sequence[int], length: int = 4, drafter: LookupDrafter | None = None) -> list[int]:
    return list((drafter or LookupDrafter()).propose(context, Past(), FixedLength(length), CHANCE).tokens)


def slow_proposal(context: Sequence[int], length: int) -> list[int]:
    """The same by looking through the whole context, longest n-gram first, most recent first."""
    for size in range(min(LONGEST, len(context)), SHORTEST - 1, -1):
        for start in range(len(context) - size - 1, -1, -1):
            if list(context[start : start + size]) == list(context[len(context) - size :]):
                text = list(context)
                for at in range(start + size, start + size + length):
                    text.append(text[at])
                return text[len(context) :]
    return []


def test_it_proposes_what_followed_the_last_time() -> None:
    assert proposed([1, 2, 3, 4, 5, 9, 1, 2]) == [3, 4, 5, 9]


def test_the_most_recent_of_equal_matches_wins() -> None:
    assert proposed([1, 2, 7, 1, 2, 8, 1, 2], length=1) == [8]


def test_a_longer_match_wins_over_a_more_recent_one() -> None:
    assert proposed([5, 1, 2, 7, 6, 1, 2, 8, 5, 1, 2], length=1) == [7]


def test_a_match_longer_than_the_longest_n_gram_is_found_all_the_same() -> None:
    phrase = list(range(LONGEST + 4))
    assert proposed([*phrase, 90, 91, *phrase], length=2) == [90, 91]


def test_a_repetition_goes_on_into_what_was_proposed() -> None:
    assert proposed([1, 2, 3, 1, 2], length=7) == [3, 1, 2, 3, 1, 2, 3]
    assert proposed([4, 4, 4], length=5) == [4] * 5


@pytest.mark.parametrize("context", [[1], [1, 2], [1, 2, 3, 4], [1, 2, 3, 1]])
def test_nothing_is_proposed_without_a_match(context: list[int]) -> None:
    assert proposed(context) == []


def test_nothing_is_drafted_when_the_block_is_long_enough_already() -> None:
    assert proposed([1, 1, 1, 1], length=0) == []


def test_every_proposed_token_is_certain() -> None:
    proposal = LookupDrafter().propose([1, 2, 3, 1, 2], Past(), FixedLength(3), CHANCE)
    assert [support(q) for q in proposal.distributions] == [[(token, 1.0)] for token in proposal.tokens]


def test_it_agrees_with_a_search_of_the_whole_context_while_the_text_grows() -> None:
    rng = np.random.default_rng(2)
    for vocabulary in (2, 3, 6):
        drafter = LookupDrafter()
        context = rng.integers(0, vocabulary, 5).tolist()
        drafter.prefill(context)
        for _ in range(120):
            drafter.rewind(len(context) - 1)
            assert proposed(context, 5, drafter) == slow_proposal(context, 5)
            context += rng.integers(0, vocabulary, rng.integers(1, 4)).tolist()


@pytest.mark.parametrize("kept", range(2, 12))
def test_text_that_was_taken_back_is_forgotten(kept: int) -> None:
    context = [1, 2, 3, 1, 2, 4, 1, 2, 3, 5, 1, 2]
    drafter = LookupDrafter()
    drafter.prefill(context)
    drafter.rewind(kept)
    other = [*context[:kept], 8, 1, 2]
    assert proposed(other, 3, drafter) == slow_proposal(other, 3)


class Token(int):
    """A token that counts how often the index is asked for it, or filled with it."""

    hashed = 0

    def __hash__(self) -> int:
        Token.hashed += 1
        return int(self)


class Counting(list[int]):
    """A context that counts the tokens that are read of it."""

    read = 0

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        found = super().__getitem__(key)
        self.read += len(found) if isinstance(key, slice) else 1
        return found


def test_a_round_reads_as_much_of_a_long_context_as_of_a_short_one() -> None:
    read, hashed = {}, {}
    for size in (200, 5000):
        context = Counting(Token(token) for token in np.random.default_rng(3).integers(0, 9, size))
        drafter = LookupDrafter()
        drafter.prefill(context)
        context += [Token(1), Token(2), Token(3)]
        context.read = Token.hashed = 0
        drafter.propose(context, Past(), FixedLength(4), CHANCE)
        drafter.rewind(len(context) - 1)
        read[size], hashed[size] = context.read, Token.hashed
    assert max(read.values()) < 2 * LONGEST * LONGEST
    assert max(hashed.values()) < 4 * LONGEST * LONGEST
