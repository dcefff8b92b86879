from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Noise
from specdec_cli.core.past import Past
from specdec_cli.drafters.text import NEAR, TRUSTED, TextDrafter, confidence
from tests.drafters.masks import InTurn
from tests.enumeration import support

CHANCE = Noise(0).round(0, 0)
PROMPT = [3, 1, 4]
TEXT = list(range(100, 160))


def drafter_of(text: Sequence[int] = TEXT) -> TextDrafter:
    drafter = TextDrafter(text)
    drafter.prefill(PROMPT)
    return drafter


def proposed(output: Sequence[int], drafter: TextDrafter | None = None, length: int = 4) -> list[int]:
    context = [*PROMPT, *output]
    return list((drafter or drafter_of()).propose(context, Past(), FixedLength(length), CHANCE).tokens)


def missed(text: Sequence[int], output: Sequence[int]) -> list[int]:
    """The places of `output` that are not what a drafter of `text` proposed just before."""
    drafter = drafter_of(text)
    return [at for at, token in enumerate(output) if proposed(output[:at], drafter, 1) != [token]]


def test_it_begins_with_the_beginning_of_the_text_and_goes_along_with_the_output() -> None:
    assert proposed([]) == TEXT[:4]
    assert proposed(TEXT[:7]) == TEXT[7:11]
    assert missed(TEXT, TEXT) == []


def test_the_end_of_the_text_ends_the_block() -> None:
    assert proposed(TEXT[:-2]) == TEXT[-2:]
    assert proposed(TEXT) == []


EDITS = {
    "an insertion": [*TEXT[:20], 7, 5, 3, *TEXT[20:]],
    "a deletion": [*TEXT[:20], *TEXT[26:]],
    "a replacement": [*TEXT[:20], 7, 5, *TEXT[25:]],
    "a preface": [7, 5, 3, 7, 5, 3, *TEXT],
    "a piece that moved": [*TEXT[30:], *TEXT[:30]],
    "several": [*TEXT[:10], 7, *TEXT[10:20], *TEXT[22:30], 8, *TEXT[31:40], *TEXT[45:]],
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_costs_what_it_changes_and_one_token_more(name: str) -> None:
    output = EDITS[name]
    changes = 1 + sum(second - first != 1 for first, second in pairwise(output))
    assert len(missed(TEXT, output)) <= changes


@pytest.mark.parametrize("seed", range(20))
def test_edits_of_a_text_of_few_words_are_survived_within_a_few_tokens(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = rng.integers(0, 12, 400).tolist()
    start, removed, put = rng.integers(50, 300), rng.integers(0, 6), rng.integers(0, 12, rng.integers(0, 6)).tolist()
    output = [*text[:start], *put, *text[start + removed :]]
    late = [at for at in missed(text, output) if at >= start + len(put) + 8]
    assert [at for at in missed(text, output) if at < start] == []
    assert late == []


def test_the_nearest_of_equal_places_is_where_it_goes_on() -> None:
    function = [1, 2, 3, 4]
    text = [*function, 10, *function, 20, *function, 30, *function, 40]
    for place, after in ((5, 20), (10, 30)):
        assert proposed([*text[:place], 9, *function[1:]], drafter_of(text), 1) == [after]


@pytest.mark.parametrize("gap", [2, 100, NEAR - 20])
def test_near_reaches_both_ways(gap: int) -> None:
    filler, here = list(range(1000, 1000 + gap)), list(range(50, 64))
    text = [7, 8, 1, *filler, *here, *filler[::-1], 7, 8, 2, *range(3000, 3000 + 2 * NEAR), 7, 8, 3]
    for read, after in ((TRUSTED, 1), (len(here), 2)):
        assert proposed([*here[:read], 9, 7, 8], drafter_of(text), 1) == [after]


def test_the_nearest_is_one_that_is_preceded_alike() -> None:
    text = [1, 5, 2, 50, 8, 60, *range(100, 120), 2, 8, 70]
    assert proposed([1, 9, 2, 8], drafter_of(text), 1) == [70]


def test_near_is_where_the_texts_parted_not_where_a_chance_match_led() -> None:
    text = [0, 1, 2, 3, 50, 51, 9, 8, 21, *range(100, 160), 70, 71, 9, 8, 22]
    assert proposed([0, 1, 2, 70, 9, 8], drafter_of(text), 1) == [21]


def test_a_longer_match_far_away_wins_over_a_near_one() -> None:
    text = [1, 2, 50, *range(1000, 1000 + 2 * NEAR), 8, 1, 2, 60]
    assert proposed([1, 2, 8, 1, 2], drafter_of(text), 1) == [60]


def test_nothing_is_proposed_where_the_text_has_nothing_like_the_output() -> None:
    assert proposed([*TEXT[:9], 7]) == []
    assert proposed([], drafter_of([])) == []


def test_confidence_is_high_in_step_and_low_just_after_a_realignment() -> None:
    def confidences(output: Sequence[int]) -> tuple[float, ...]:
        return drafter_of().propose([*PROMPT, *output], Past(), FixedLength(3), CHANCE).confidences

    assert confidences(TEXT[:30]) == tuple(confidence(TRUSTED + read) for read in (30, 31, 32, 33))
    assert confidences([*TEXT[:30], 7, *TEXT[30:32]]) == tuple(confidence(read) for read in (2, 3, 4, 5))
    known = [confidence(length) for length in range(1, 1000)]
    assert known == sorted(set(known))
    assert (min(known) > 0, max(known) < 1) == (True, True)


def test_every_proposed_token_is_certain_and_allowed() -> None:
    proposal = drafter_of().propose(PROMPT, Past(mask=InTurn(*TEXT[:2], 7)), FixedLength(4), CHANCE)
    assert [support(q) for q in proposal.distributions] == [[(token, 1.0)] for token in TEXT[:2]]


@pytest.mark.parametrize("kept", range(len(PROMPT) + 9))
def test_output_that_was_taken_back_is_forgotten(kept: int) -> None:
    context = [*PROMPT, *TEXT[:6], 7, 8]
    drafter = drafter_of()
    drafter.propose(context, Past(), FixedLength(4), CHANCE)
    drafter.rewind(kept)
    other = [*context[: max(kept, len(PROMPT))], 9, *TEXT[40:43]]
    assert proposed(other[len(PROMPT) :], drafter) == proposed(other[len(PROMPT) :])


def test_another_prompt_begins_the_text_again() -> None:
    drafter = drafter_of()
    proposed(TEXT[:9], drafter)
    longer = [*PROMPT, *TEXT[:9], 5, 6]
    drafter.prefill(longer)
    assert drafter.propose(longer, Past(), FixedLength(2), CHANCE).tokens == tuple(TEXT[:2])


def test_without_a_prompt_the_output_begins_after_the_first_context() -> None:
    drafter = TextDrafter(TEXT)
    for read in (0, 3):
        context = [*PROMPT, *TEXT[:read]]
        assert drafter.propose(context, Past(), FixedLength(2), CHANCE).tokens == tuple(TEXT[read : read + 2])


def test_a_round_reads_as_much_of_a_long_output_as_of_a_short_one() -> None:
    class Counting(list[int]):
        read = 0

        def __getitem__(self, key):  # type: ignore[no-untyped-def]
            found = super().__getitem__(key)
            self.read += len(found) if isinstance(key, slice) else 1
            return found

    for size in (200, 5000):
        context = Counting([*PROMPT, *range(size)])
        drafter = drafter_of(range(size + 100))
        drafter.propose(context, Past(), FixedLength(4), CHANCE)
        context += [size, size + 1]
        drafter.rewind(len(context) - 1)
        context.read = 0
        drafter.propose(context, Past(), FixedLength(4), CHANCE)
        assert context.read <= 3
