"""The statistical assertions themselves: they raise as few false alarms as they say, and see what they should."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.statistical import follows, l1_bound, l1_distance

LAW = {0: 0.5, 1: 0.3, 2: 0.15, 3: 0.05, 4: 0.0}


def drawn(law: dict[int, float], count: int, seed: int) -> list[int]:
    return list(np.random.default_rng(seed).choice(list(law), count, p=list(law.values())))


def test_the_bound_is_the_published_one() -> None:
    assert l1_bound(1000, 4, 1e-9) == pytest.approx(math.sqrt(2 / 1000 * math.log(14 / 1e-9)))


def test_false_alarms_are_as_rare_as_stated() -> None:
    alarms = sum(not follows(drawn(LAW, 200, seed), LAW, false_alarm=0.2) for seed in range(1000))
    assert alarms <= 200


def test_a_small_bias_is_seen_with_enough_samples() -> None:
    biased = {0: 0.45, 1: 0.35, 2: 0.15, 3: 0.05}
    assert not follows(drawn(biased, 30_000, 1), LAW)
    assert follows(drawn(LAW, 30_000, 1), LAW)


def test_one_impossible_sample_is_enough() -> None:
    samples = drawn(LAW, 100_000, 1)
    assert follows(samples, LAW)
    assert not follows([*samples, 4], LAW)
    assert not follows([*samples, 99], LAW)


def test_a_certain_law_allows_nothing_else() -> None:
    assert follows([7, 7], {7: 1.0})
    assert not follows([7, 8], {7: 1.0})


def test_the_distance_counts_what_was_not_seen() -> None:
    assert l1_distance([0, 0], {0: 0.5, 1: 0.5}) == 1.0
