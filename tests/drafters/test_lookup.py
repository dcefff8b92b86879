from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Noise
from specdec_cli.core.past import Past
from specdec_cli.drafters import replacements
from specdec_cli.drafters.lookup import SHORTEST, LookupDrafter, confidence
from tests.drafters.masks import InTurn
from tests.drafters.test_suffixes import slow_match
from tests.enumeration import support

CHANCE = Noise(0).round(0, 0)


def proposed(context: Sequence[int], length: int = 4, drafter: LookupDrafter | None = None) -> list[int]:
    return list((drafter or LookupDrafter()).propose(context, Past(), FixedLength(length), CHANCE).tokens)


def slow_proposal(context: Sequence[int], length: int) -> list[int]:
    """The same by looking through the whole context, longest match first, most recent first."""
    match = slow_match(context, [context])
    if match.length < SHORTEST:
        return []
    text = list(context)
    for at in range(match.place, match.place + length):
        text.append(text[at])
    return text[len(context) :]


def test_it_proposes_what_followed_the_last_time() -> None:
    assert proposed([1, 2, 3, 4, 5, 9, 1, 2]) == [3, 4, 5, 9]


def test_the_most_recent_of_equal_matches_wins() -> None:
    assert proposed([1, 2, 7, 1, 2, 8, 1, 2], length=1) == [8]


def test_a_longer_match_wins_over_a_more_recent_one() -> None:
    assert proposed([5, 1, 2, 7, 6, 1, 2, 8, 5, 1, 2], length=1) == [7]


def test_a_long_match_wins_over_a_recent_one_that_is_a_token_shorter() -> None:
    phrase = list(range(40))
    assert proposed([*phrase, 90, 91, 92, *phrase[1:], 95, 96, *phrase], length=2) == [90, 91]


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


def test_a_block_ends_before_a_token_that_a_mask_forbids() -> None:
    past = Past(mask=InTurn(3, 4, 6))
    assert LookupDrafter().propose([1, 2, 3, 4, 5, 9, 1, 2], past, FixedLength(4), CHANCE).tokens == (3, 4)


def test_confidence_grows_with_the_match_and_with_what_was_proposed_since() -> None:
    context = [9, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
    proposal = LookupDrafter().propose(context, Past(), FixedLength(4), CHANCE)
    of_next = confidence(7)
    assert proposal.confidences == (*(confidence(length) for length in (3, 4, 5, 6)), of_next)
    known = [confidence(length) for length in range(SHORTEST, 1000)]
    assert known == sorted(set(known))
    assert (min(known) > 0, max(known) < 1) == (True, True)


def test_it_agrees_with_a_search_of_the_whole_context_while_the_text_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacements, "SURE", 1000)
    rng = np.random.default_rng(2)
    for vocabulary in (2, 3, 6):
        drafter = LookupDrafter()
        context = rng.integers(0, vocabulary, 5).tolist()
        drafter.prefill(context)
        for _ in range(120):
            drafter.rewind(len(context) - 1)
            assert proposed(context, 5, drafter) == slow_proposal(context, 5)
            context += rng.integers(0, vocabulary, rng.integers(1, 4)).tolist()


@pytest.mark.parametrize("kept", range(13))
def test_text_that_was_taken_back_is_forgotten(kept: int) -> None:
    context = [1, 2, 3, 1, 2, 4, 1, 2, 3, 5, 1, 2]
    for other in ([*context[:kept], 8, 1, 2], [*context[:kept], *context[:2]], context[:kept]):
        drafter = LookupDrafter()
        drafter.prefill(context)
        drafter.rewind(kept)
        assert proposed(other, 3, drafter) == slow_proposal(other, 3)


def test_another_prompt_is_read_as_what_it_is() -> None:
    drafter = LookupDrafter()
    for prompt in ([1, 2, 3, 1], [5, 6, 7, 5, 6], [1, 2, 3, 1, 2]):
        drafter.prefill(prompt)
        assert proposed(prompt, 3, drafter) == slow_proposal(prompt, 3)


def test_further_material_is_found_where_the_context_has_nothing_as_long() -> None:
    def found(context: list[int], length: int = 4) -> list[int]:
        return proposed(context, length, LookupDrafter([[1, 2, 3, 4], [7, 2, 3, 5, 6]]))

    assert found([2, 3]) == [5, 6]
    assert found([0, 1, 2, 3]) == [4]
    assert found([2, 3, 8, 2, 3], 1) == [8]
    assert found([2, 3, 8, 1, 2, 3]) == [4]


def test_material_is_joined_neither_to_the_context_nor_to_other_material() -> None:
    for context in ([1, 2], [4, 3, 4], [2, 3], [4, 1, 2]):
        assert proposed(context, 3, LookupDrafter([[1, 2], [3, 4]])) == []


def test_material_is_still_there_when_the_context_begins_anew() -> None:
    drafter = LookupDrafter([[1, 2, 3, 4]])
    assert proposed([5, 1, 2], 2, drafter) == [3, 4]
    drafter.rewind(0)
    assert proposed([6, 6, 1, 2, 3], 2, drafter) == [4]


class Counting(list[int]):
    """A context that counts the tokens that are read of it."""

    read = 0

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        found = super().__getitem__(key)
        self.read += len(found) if isinstance(key, slice) else 1
        return found


def test_a_round_reads_of_a_context_what_is_new() -> None:
    for size in (200, 5000):
        context = Counting(np.random.default_rng(3).integers(0, 9, size).tolist())
        drafter = LookupDrafter()
        drafter.prefill(context)
        context += [1, 2, 3]
        for emitted in ((4, 5), (6,)):
            context.read = 0
            drafter.propose(context, Past(), FixedLength(4), CHANCE)
            assert context.read <= 4
            context += emitted
            drafter.rewind(len(context) - 1)
