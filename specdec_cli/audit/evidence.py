"""Evidence against a sampler, as the money of somebody who bets against it at fair odds and starts with 1.

Whoever bets on what a right sampler does loses or stays where he is on average, so that he ever holds 1 / alarm with
a chance of at most `alarm`, however long he plays and whoever says when to stop (Ville 1939; Shafer 2021, "Testing by
betting"). So a clock may end an audit and its false-alarm rate still holds, for any number of samples. He divides
his money among fixed stakes λ: an observation x with expectation m multiplies each part by e^(λ(x - m)) over the
expectation of that, or over more.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

STAKES: Final = np.array([sign * 2.0**power for power in range(-3, 4) for sign in (-1, 1)])
POWER: Final = 0.99
QUANTILE: Final = 2.3263
"""A normal number is below it with chance `POWER`."""
_OF_A_RANK: Final[Floats] = np.log(np.sinh(STAKES / 2) / (STAKES / 2))


class Evidence:
    """Of one kind of observation: how many there were, and the logarithm of the most money there ever was."""

    def __init__(self) -> None:
        self.count = 0
        self.most = 0.0
        self._money = np.empty(0)  # logarithms
        self._costs = np.zeros(STAKES.size)

    def event(self, happened: bool, probability: float) -> None:
        """Something that should happen with `probability` did or did not."""
        if happened and probability <= 0:
            self.impossible()
            return
        costs = _of_an_event(probability)
        self._observe(STAKES * (happened - probability) - costs, costs)

    def token(self, rank: float, is_best: bool, best: float) -> None:
        """A token came out that has this `laws.rank` in its law; is it the likeliest, which has probability `best`?

        Half of the stakes are on each.
        """
        of_rank = STAKES * (rank - 0.5) - _OF_A_RANK
        self._observe(np.concatenate([of_rank, STAKES * (is_best - best) - _of_an_event(best)]), _OF_A_RANK)

    def impossible(self) -> None:
        """Something happened that never should."""
        self.count += 1
        self.most = math.inf

    def convicts(self, alarm: float) -> bool:
        """Whether a right sampler would have come to this with a chance of at most `alarm`."""
        return self.most >= -math.log(alarm)

    def smallest_bias(self, alarm: float) -> float | None:
        """The least shift of a mean that so many observations show with chance `POWER`; None if there is none.

        A shift δ brings stake λ to λ·n·δ less its costs, give or take λ times a deviation of at most √n / 2.
        """
        if self.count == 0 or not self._money.size:
            return None
        reached = (math.log(self._money.size) - math.log(alarm) + self._costs) / np.abs(STAKES)
        worst = max(float(reached[STAKES > 0].min()), float(reached[STAKES < 0].min()))
        bias = (worst + QUANTILE * math.sqrt(self.count) / 2) / self.count
        return bias if bias < 1 else None

    def _observe(self, gains: Floats, costs: Floats) -> None:
        if not self._money.size:
            self._money = np.full(gains.size, -math.log(gains.size))
        self.count += 1
        self._money += gains
        self._costs += costs
        top = float(self._money.max())
        self.most = max(self.most, top + math.log(float(np.exp(self._money - top).sum())))


def _of_an_event(probability: float) -> Floats:
    """log E e^(λ(x - p)) for each stake."""
    p = min(probability, 1.0)
    return np.asarray(np.log1p(p * np.expm1(STAKES)) - STAKES * p)
