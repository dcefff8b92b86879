"""Tables of n-grams are proper distributions: those that their formula says, however they were put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from specdec_cli.core.ngram_counts import MOST, Observations, count, joined, merge, observe, pruned
from specdec_cli.core.ngrams import DISCOUNTS, UNIT, NgramTable

VOCABULARY = 7


def random_text(seed: int, length: int = 60) -> list[int]:
    return [int(each) for each in np.random.default_rng(seed).zipf(1.5, length).clip(1, VOCABULARY - 1)]


def table_of(*texts: Sequence[int], order: int = 3) -> NgramTable:
    return count(joined([observe(text, order) for text in texts]), VOCABULARY)


def probabilities(table: NgramTable, context: Sequence[int]) -> list[float]:
    return [float(each) for each in np.exp(table.logits(context).astype(np.float64))]


def by_the_formula(texts: Sequence[Sequence[int]], order: int, context: Sequence[int]) -> list[float]:
    """Interpolated absolute discounting, in fractions, from plain counts."""
    law = [Fraction(1, VOCABULARY)] * VOCABULARY
    for length in range(min(order - 1, len(context)) + 1):
        behind = tuple(context[len(context) - length :])
        seen = Counter(
            text[at + length]
            for text in texts
            for at in range(len(text) - length)
            if tuple(text[at : at + length]) == behind
        )
        if not seen:
            continue
        discount = Fraction(str(DISCOUNTS[min(length, len(DISCOUNTS) - 1)]))
        total = sum(seen.values())
        left = sum((min(Fraction(each), discount) for each in seen.values()), Fraction(0)) / total
        law = [max(seen[token] - discount, Fraction(0)) / total + left * law[token] for token in range(VOCABULARY)]
    return [float(each) for each in law]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("context", [(), (1,), (2, 1), (1, 1, 1), (5, 6, 5, 6), (0,), (0, 1)])
def test_a_row_is_what_the_formula_says(order: int, context: tuple[int, ...]) -> None:
    texts = [random_text(1), random_text(2)]
    expected = by_the_formula(texts, order, context)
    assert probabilities(table_of(*texts, order=order), context) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("context", [(), (1,), (2, 1), (0, 0), (6, 5, 4)])
def test_every_token_has_a_chance_and_they_add_up_to_one(context: tuple[int, ...]) -> None:
    for table in (table_of(random_text(3)), table_of([1])):
        law = probabilities(table, context)
        assert min(law) > 0
        assert sum(law) == pytest.approx(1, abs=1e-6)


def test_rows_are_not_shared() -> None:
    table = table_of(random_text(4))
    before = table.logits((1,)).copy()
    table.logits((1,))[:] = 0
    assert (table.logits((1,)) == before).all()


def same(one: NgramTable, other: NgramTable) -> bool:
    levels = zip(one.levels, other.levels, strict=True)
    return all((ours.keys == theirs.keys).all() and (ours.counts == theirs.counts).all() for ours, theirs in levels)


def test_tables_merge_to_that_of_both_texts() -> None:
    one, other = random_text(5), random_text(6)
    assert same(merge(table_of(one), table_of(other)), table_of(one, other))


def test_a_shorter_table_merges_with_a_longer_one() -> None:
    one, other = random_text(5), random_text(6)
    for both in (
        merge(table_of(one, order=2), table_of(other, order=5)),
        merge(table_of(other, order=5), table_of(one, order=2)),
    ):
        assert both.order == 5
        assert sum(probabilities(both, (1, 1, 1, 1))) == pytest.approx(1, abs=1e-6)
    assert probabilities(both, (1,)) == pytest.approx(probabilities(table_of(one, other, order=2), (1,)), rel=1e-5)


def test_a_text_in_pieces_that_overlap_counts_like_the_whole() -> None:
    text, order = random_text(7), 3
    pieces = [observe(text[:20], order), observe(text[18:], order, start=2)]
    assert same(count(joined(pieces), VOCABULARY), table_of(text))


def test_a_context_behind_which_nothing_counts_says_no_more_than_a_shorter_one() -> None:
    table = count(observe([1, 2, 3], 3, start=2), VOCABULARY)
    assert probabilities(table, (1,)) == probabilities(table, ())
    assert probabilities(count(observe([1, 2], 2, start=2), VOCABULARY), (1,)) == pytest.approx([1 / 7] * 7)


def test_parts_of_a_count_are_rounded_and_a_count_has_a_limit() -> None:
    seen = Observations(np.array([[1], [2], [3]]), np.array([0.97 / UNIT, 0.4 / UNIT, float(MOST)]))
    singles = count(seen, VOCABULARY)
    assert singles.levels[0].counts.tolist() == [1, 0, MOST]
    assert merge(singles, singles).levels[0].counts.tolist() == [2, 0, MOST]


def test_texts_are_not_joined_to_each_other() -> None:
    table = table_of([1, 2], [3, 4])
    assert probabilities(table, (2,))[3] == probabilities(table, ())[3]


@pytest.mark.parametrize("least", [0, 1, 2, 3, 100])
def test_pruning_leaves_a_proper_distribution_and_what_is_frequent(least: int) -> None:
    text = random_text(8, 300)
    table = table_of(text)
    smaller = pruned(table, least)
    assert smaller.levels[0].counts.tolist() == table.levels[0].counts.tolist()
    for context in ((), (1,), (1, 2), (3, 3)):
        assert sum(probabilities(smaller, context)) == pytest.approx(1, abs=1e-6)
    triples = Counter(zip(text, text[1:], text[2:], strict=False))
    assert len(smaller.levels[2].keys) == sum(each >= least for each in triples.values())


def test_pruning_keeps_what_longer_ones_go_on_from() -> None:
    table = count(joined([observe([1, 2, 3], 3), observe([1, 2, 3], 3, start=2)]), VOCABULARY)
    assert [level.counts.tolist() for level in pruned(table, 2).levels] == [[16, 16, 32], [16, 32], [32]]


def test_a_table_says_what_it_is() -> None:
    table = table_of([1, 2, 1], [1])
    assert (table.order, table.size, table.tokens) == (3, 2 + 2 + 1, 4)
