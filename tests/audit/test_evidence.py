"""The bets against a sampler: as few false alarms as stated, whenever one stops, and the power that is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specdec_cli.audit.evidence import POWER, STAKES, Evidence
from specdec_cli.audit.laws import rank

ALARM = 0.05


def convicted(chance: float, said: float, count: int, seed: int) -> Evidence:
    """`count` events of probability `chance`, held to be of probability `said`."""
    evidence = Evidence()
    for happened in np.random.default_rng(seed).random(count) < chance:
        evidence.event(bool(happened), said)
    return evidence


@pytest.mark.parametrize("chance", [0.02, 0.5, 0.9])
def test_a_right_sampler_is_convicted_as_rarely_as_stated_although_every_moment_counts(chance: float) -> None:
    alarms = sum(convicted(chance, chance, 100, seed).convicts(ALARM) for seed in range(300))
    assert alarms <= 300 * ALARM


def test_ranks_of_the_right_law_raise_as_few_alarms() -> None:
    law = np.array([0.5, 0.2, 0.2, 0.06, 0.04])
    best, alarms = 0, 0
    for seed in range(200):
        evidence = Evidence()
        for token in np.random.default_rng(seed).choice(5, 100, p=law):
            evidence.token(rank(law, int(token)), token == best, 0.5)
        alarms += evidence.convicts(ALARM)
    assert alarms <= 200 * ALARM


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_smallest_bias_is_seen_as_often_as_promised(sign: int) -> None:
    bias = convicted(0.5, 0.5, 400, 1).smallest_bias(1e-4)
    assert bias is not None
    assert bias < 0.25
    seen = sum(convicted(0.5 + sign * bias, 0.5, 400, seed).convicts(1e-4) for seed in range(200))
    assert seen >= 200 * POWER


def test_more_samples_see_smaller_biases() -> None:
    biases = [convicted(0.3, 0.3, count, 1).smallest_bias(1e-4) for count in (200, 800, 3200)]
    assert None not in biases
    assert biases == sorted(biases, key=lambda bias: -(bias or 0))


def test_too_few_samples_promise_nothing() -> None:
    assert Evidence().smallest_bias(1e-4) is None
    assert convicted(0.5, 0.5, 3, 1).smallest_bias(1e-4) is None


def test_what_cannot_happen_convicts_at_once() -> None:
    evidence = Evidence()
    evidence.event(True, 0.0)
    assert evidence.convicts(1e-30)


def test_what_must_happen_and_what_cannot_say_nothing_as_long_as_they_do() -> None:
    evidence = Evidence()
    for _ in range(1000):
        evidence.event(True, 1.0)
        evidence.event(False, 0.0)
    assert evidence.most == pytest.approx(0, abs=1e-9)


def test_a_bet_on_a_rank_is_fair_or_worse_for_any_law() -> None:
    for law in (np.array([1.0]), np.array([0.9, 0.1]), np.full(50, 0.02)):
        ranks = np.array([rank(law, token) for token in range(law.size)])
        assert float(law @ ranks) == pytest.approx(0.5)
        for stake in STAKES:
            assert float(law @ np.exp(stake * (ranks - 0.5))) <= math.sinh(stake / 2) / (stake / 2) + 1e-12
