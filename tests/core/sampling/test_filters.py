"""Each filter on candidates made for it: whole rows and few, ranked and not, with edges that chance would miss."""

from __future__ import annotations

import numpy as np
import pytest

from specdec_cli.core.sampling import filters
from specdec_cli.core.sampling.candidates import Candidates
from specdec_cli.core.top_k import Logits
from tests.core.sampling.random_chains import random_row

FILTERS = {
    "top_k": lambda candidates: filters.top_k(candidates, 50),
    "top_p": lambda candidates: filters.top_p(candidates, 0.7),
    "min_p": lambda candidates: filters.min_p(candidates, 0.02),
    "typical": lambda candidates: filters.typical(candidates, 0.6),
    "top_n_sigma": lambda candidates: filters.top_n_sigma(candidates, 0.9),
    "without_top": lambda candidates: filters.without_top(candidates, 0.01),
}


def whole(logits: Logits, scale: float = 1.0) -> Candidates:
    return Candidates(None, logits, int(logits.argmax()), scale)


def few(logits: Logits, scale: float = 1.0) -> Candidates:
    return Candidates(np.arange(logits.size), logits, int(logits.argmax()), scale)


def tokens(candidates: Candidates) -> list[int]:
    ids = np.arange(candidates.size) if candidates.ids is None else candidates.ids
    return sorted(ids[candidates.logits > -np.inf].tolist())


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("size", [40, 3000])
def test_a_filter_leaves_the_same_of_a_row_of_few_and_of_ranked_ones(name: str, scale: float, size: int) -> None:
    for seed in range(10):
        logits = random_row(np.random.default_rng([seed, size]), size)
        ranked = few(logits, scale).first(size)
        left = [tokens(FILTERS[name](each)) for each in (whole(logits, scale), few(logits, scale), ranked)]
        assert left[0] == left[1] == left[2]
        assert 0 < len(left[0]) <= size


@pytest.mark.parametrize("name", FILTERS)
def test_what_a_filter_leaves_is_in_the_order_that_it_says(name: str) -> None:
    logits = random_row(np.random.default_rng(4), 500)
    for candidates in (whole(logits), few(logits), few(logits).first(300)):
        left = FILTERS[name](candidates)
        assert left.best == left.logits.max()
        assert left.logits.argmax() == left.best_at
        if left.ids is not None:
            assert np.array_equal(left.logits, logits[left.ids])
            assert np.all(np.diff(left.logits) <= 0 if left.ranked else np.diff(left.ids) > 0)


def test_typical_tokens_are_those_of_the_expected_surprise() -> None:
    logits = np.log(np.array([0.5, 0.2, 0.2, 0.06, 0.04], np.float32))
    assert tokens(filters.typical(whole(logits), 0.3)) == [1, 2], "entropy is 1.28, log 5 = 1.61, log 2 = 0.69"
    assert tokens(filters.typical(whole(logits), 0.41)) == [0, 1, 2]
    assert tokens(filters.typical(whole(logits), 0.0)) == [1]


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_typical_knows_no_tokens_without_weight(share: float) -> None:
    logits = np.full(600, -np.inf, np.float32)
    logits[:500:5] = np.linspace(0, -150, 100)
    known = tokens(filters.typical(few(logits[:500:5].copy()), share))
    assert tokens(filters.typical(whole(logits), share)) == [5 * at for at in known]


def test_typical_holds_more_than_its_share_and_top_p_at_least_its_share() -> None:
    alike = whole(np.zeros(4, np.float32))
    assert tokens(filters.typical(alike, 0.5)) == [0, 1, 2]
    assert tokens(filters.top_p(alike, 0.5)) == [0, 1]


@pytest.mark.parametrize("name", FILTERS)
def test_no_filter_leaves_a_token_at_minus_infinity(name: str) -> None:
    logits = np.full(300, -np.inf, np.float32)
    logits[[5, 70, 200]] = [1, 1.1, 1.2]
    left = FILTERS[name](whole(logits))
    assert set(tokens(left)) <= {5, 70, 200}
    assert left.ids is None or left.size == len(tokens(left))


def test_a_deviation_counts_no_token_at_minus_infinity() -> None:
    logits = np.array([3, 2, 1, 0, -np.inf, -np.inf], np.float32)
    assert tokens(filters.top_n_sigma(whole(logits), 1.0)) == [0, 1], "the deviation is 1.118"


def test_xtc_leaves_the_least_likely_of_the_top_and_all_below() -> None:
    logits = np.log(np.array([0.1, 0.3, 0.2, 0.3, 0.1], np.float32))
    assert tokens(filters.without_top(whole(logits), 0.15)) == [0, 2, 4]
    assert tokens(filters.without_top(whole(logits), 0.25)) == [0, 2, 3, 4], "of equals the highest id stays"
    assert tokens(filters.without_top(whole(logits), 0.0)) == [4]
    assert tokens(filters.without_top(whole(np.array([1, 2, -np.inf], np.float32)), 0.0)) == [0]


def test_xtc_that_would_leave_out_nothing_returns_the_same_candidates() -> None:
    candidates = whole(np.log(np.array([0.6, 0.2, 0.2], np.float32)))
    assert filters.without_top(candidates, 0.3) is candidates


def test_the_temperature_of_a_row_costs_no_copy_of_it() -> None:
    logits = random_row(np.random.default_rng(1), 100)
    assert filters.temperature(whole(logits), 0.7).logits is logits
