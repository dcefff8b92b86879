"""The tokens that may still come next, on their way through the sampling chain.

Every sampler takes `Candidates` and returns new ones. They begin as a whole row; the first filter makes
them few. They know nothing about which sampler comes next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import Distribution, Ids, Weights, column_sums
from specdec_cli.core.top_k import Logits, top_k_ids


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """`logits` [n] of the tokens `ids` [n], or of 0..n-1 if `ids` is None; the best one is at `best_at`.

    What counts is logits / `scale`: temperature changes the scale and not the row. `ranked` ones stand
    largest first, lowest id first among equals; all others in ascending order of id. A whole row may
    hold -inf, which is no candidate; anything else is finite.
    """

    ids: Ids | None
    logits: Logits
    best_at: int
    scale: float = 1.0
    ranked: bool = False

    @property
    def best(self) -> float:
        """The largest of the logits."""
        return float(self.logits[self.best_at])

    @property
    def size(self) -> int:
        """How many there are; of a whole row, with those at -inf."""
        return self.logits.size

    def scaled(self, factor: float) -> Candidates:
        """The same at `factor` times the temperature."""
        return Candidates(self.ids, self.logits, self.best_at, self.scale * factor, self.ranked)

    def with_logits(self, logits: Logits) -> Candidates:
        """The same tokens with other `logits` [n]; they must be in order of id."""
        assert not self.ranked
        return Candidates(self.ids, logits, int(logits.argmax()), self.scale)

    def keep(self, positions: Ids, *, ranked: bool = False) -> Candidates:
        """Those at `positions` (ascending, or by rank), without any at -inf."""
        logits = self.logits[positions]
        possible = logits > -np.inf
        if not possible.all():
            positions, logits = positions[possible], logits[possible]
        best_at = 0 if ranked else int(logits.argmax())
        return Candidates(self.ids_at(positions), logits, best_at, self.scale, ranked)

    def first(self, count: int) -> Candidates:
        """The `count` best, ranked."""
        if self.ranked and self.ids is not None:
            return Candidates(self.ids[:count], self.logits[:count], 0, self.scale, ranked=True)
        return self.keep(top_k_ids(self.logits, count), ranked=True)

    def best_only(self) -> Candidates:
        """The best, the lowest id among equals."""
        return self.keep(np.array([self.best_at]), ranked=True)

    def by_id(self) -> Candidates:
        """The same in order of id."""
        if not self.ranked or self.ids is None:
            return self
        order = np.argsort(self.ids)
        return Candidates(self.ids[order], self.logits[order], int(np.argmin(order)), self.scale)

    def ids_at(self, positions: Ids) -> Ids:
        """The tokens at `positions`."""
        return positions if self.ids is None else self.ids[positions]

    def find(self, tokens: Ids) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """Where those of `tokens` [m] stand that are here, in order of id; and which of the m they are."""
        assert not self.ranked
        if self.ids is None:
            here = tokens < self.size
            return tokens[here], here
        positions = np.minimum(np.searchsorted(self.ids, tokens), self.size - 1)
        here = self.ids[positions] == tokens
        return positions[here], here

    def exponents(self) -> Weights:
        """(logits - best) / scale [n]: the logarithms of the weights; float32 for a whole row, else float64."""
        if self.ids is not None:
            return (self.logits.astype(np.float64) - self.best) * (1 / self.scale)
        with np.errstate(over="ignore"):  # a logit of -3e38 may become -inf: its weight is 0 either way
            exponents = self.logits - self.best
            if self.scale != 1:
                exponents *= 1 / self.scale
        return exponents

    def weights(self) -> Weights:
        """Weights [n] in proportion to the probabilities, 1 for the best."""
        exponents = self.exponents()
        return np.exp(exponents, out=exponents)

    def to_distribution(self) -> Distribution:
        """What a token is drawn from."""
        if self.ids is not None and self.ids.size == 1:
            return Distribution.one_hot(int(self.ids[0]))
        ordered = self.by_id()
        return Distribution.of(ordered.weights(), ordered.ids)


def total_of(weights: Weights) -> float:
    """The sum of `weights` [n]; of float32 ones down the columns, in a third of the time and no less exactly."""
    return float(weights.sum() if weights.dtype == np.float64 else column_sums(weights).sum())
