"""The race draws from p, its noise belongs to the token alone, and what it skips could not have won."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specdec_cli.core import race
from specdec_cli.core.distribution import Distribution, Ids
from specdec_cli.core.race import Floats, Key, noise, winner
from tests.statistical import follows


def key_of(number: int) -> Key:
    first, second = np.random.default_rng(number).integers(0, 2**63, 2)
    return int(first), int(second)


def slow_winner(p: Distribution, key: Key) -> int:
    """Every token with its noise."""
    ids = np.arange(p.weights.size) if p.ids is None else p.ids
    scores = [
        float(weight) / float(noise(np.array([token]), key)[0]) for token, weight in zip(ids, p.weights, strict=True)
    ]
    return int(ids[int(np.argmax(scores))])


def dense(size: int, spread: float, seed: int) -> Distribution:
    logits = np.random.default_rng([seed, size]).normal(0, spread, size)
    return Distribution.of(np.exp(logits - logits.max()).astype(np.float32))


@pytest.mark.parametrize("size", [1, 3, 255, 256, 257, 700, 16384, 16385, 20000])
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_no_token_that_could_win_is_skipped(size: int, spread: float) -> None:
    p = dense(size, spread, 1)
    ids = np.arange(size)
    for number in range(30):
        key = key_of(number)
        assert winner(p, key) == int((p.weights / noise(ids, key)).argmax())


def test_a_block_of_noise_is_what_each_of_its_tokens_has_alone() -> None:
    p, key = dense(700, 2.0, 3), key_of(5)
    assert winner(p, key) == slow_winner(p, key)
    assert noise(np.arange(700), key).tolist() == [float(noise(np.array([each]), key)[0]) for each in range(700)]


def test_the_winner_is_the_same_however_the_distribution_is_kept() -> None:
    for number in range(50):
        p = dense(5000, 3.0, number)
        kept = np.flatnonzero(p.weights > 0)
        sparse = Distribution.of(p.weights[kept].astype(np.float64), kept)
        padded = Distribution.of(np.concatenate([p.weights, np.zeros(700, np.float32)]))
        assert winner(sparse, key_of(number)) == winner(p, key_of(number)) == winner(padded, key_of(number))


def test_most_noise_is_never_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = race.noise

    def counted(ids: Ids, key: Key) -> Floats:
        asked.append(ids.size)
        return real(ids, key)

    monkeypatch.setattr(race, "noise", counted)
    p = dense(151_936, 3.0, 1)
    for number in range(20):
        winner(p, key_of(number))
    assert sum(asked) / 20 < 151_936 / 10


def test_the_winners_have_the_law_of_p() -> None:
    p = Distribution.of(np.array([0.4, 0.25, 0.2, 0.1, 0.05]))
    law = dict(enumerate(p.weights.tolist()))
    assert follows([winner(p, key_of(number)) for number in range(4000)], law)


def test_the_winners_have_the_law_of_p_inside_a_block_and_over_blocks() -> None:
    ids = np.array([0, 256, 512, 5 * 256, 1, 257, 16384, 16384 + 256])
    weights = np.array([1, 2, 3, 4, 3, 2, 1, 4]) / 20
    order = np.argsort(ids)
    p = Distribution.of(weights[order], ids[order])
    law = dict(zip(ids.tolist(), weights.tolist(), strict=True))
    assert follows([winner(p, key_of(number)) for number in range(6000)], law)


@pytest.mark.parametrize("ids", [[7], [7, 7 + 256], [7, 8]], ids=["one token", "two of a block", "two blocks"])
def test_noise_is_exponential_and_independent(ids: list[int]) -> None:
    quarters = [math.log(4 / 3), math.log(2), math.log(4)]
    samples = [tuple(np.searchsorted(quarters, noise(np.array(ids), key_of(number)))) for number in range(8000)]
    cells: list[tuple[int, ...]] = [()]
    for _ in ids:
        cells = [(*cell, part) for cell in cells for part in range(4)]
    assert follows(samples, dict.fromkeys(cells, 1 / len(cells)))


def test_each_token_of_a_block_is_as_likely_as_the_others_to_have_its_least_noise() -> None:
    block = 7 + race.WIDTH * np.arange(race.DEPTH)
    owners = [int(noise(block, key_of(number)).argmin()) for number in range(8000)]
    assert follows(owners, dict.fromkeys(range(race.DEPTH), 1 / race.DEPTH))


def test_noise_differs_between_keys() -> None:
    one, other = noise(np.arange(3000), (1, 2)), noise(np.arange(3000), (2, 2))
    assert not np.isclose(one, other).any()
