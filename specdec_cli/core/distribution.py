"""A probability distribution over token ids, and what lossless verification asks of one.

A distribution keeps unnormalised weights and their total, so that p(x) costs a division and not a pass
over the vocabulary. It is *dense* (`ids` is None: the weight of token x is `weights[x]`) or *sparse*
(`ids` ascending, all other tokens have probability 0).

Error: dense weights are float32. Each probability is within 2e-5 (relative) of the same softmax in
float64 wherever it is above 1e-9: the exponent, at most 20.8 there, is rounded three times (4e-6), the
exponential is good to 4 ulp (5e-7), and the total carries the mean of these (3e-6, as no mean exponent is
above the entropy, 12 for 151,936 tokens) and 127 float32 additions a column, 127 · 2^-24 (8e-6). Columns
are added in float64. Sparse weights that come from a filter are float64 throughout.
It knows nothing about logits, models or where its noise comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Ids = npt.NDArray[np.intp]

ROWS: Final = 128
"""A vocabulary is viewed as [ROWS, n / ROWS]: reducing down the columns vectorises, along runs it does not."""


def column_sums(weights: Weights) -> npt.NDArray[np.float64]:
    """Sum `weights` [n] down the columns of its [ROWS, n // ROWS] view; the tail of n % ROWS is one more column."""
    columns = weights.size // ROWS
    body = weights[: columns * ROWS].reshape(ROWS, columns)
    sums = np.empty(columns + 1, np.float64)
    sums[:columns] = body.sum(axis=0)
    sums[columns] = weights[columns * ROWS :].sum(dtype=np.float64)
    return sums


_CERTAIN: Final = np.ones(1)


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Weights ≥ 0 (at least one > 0) over `ids`, or over 0..n-1 if `ids` is None; probability = weight / total.

    A dense one keeps the running totals of its columns, `cumulative` [n // ROWS + 1], to draw from.
    """

    ids: Ids | None
    weights: Weights
    total: float
    cumulative: npt.NDArray[np.float64] | None = None

    @classmethod
    def of(cls, weights: Weights, ids: Ids | None = None) -> Distribution:
        """Build from weights [n] and, if sparse, their ascending ids [n]."""
        if ids is not None:
            return cls(ids, weights, float(weights.sum(dtype=np.float64)))
        cumulative = np.cumsum(column_sums(weights))
        return cls(None, weights, float(cumulative[-1]), cumulative)

    @classmethod
    def one_hot(cls, token: int) -> Distribution:
        """All probability on `token`: greedy decoding and every deterministic drafter."""
        return cls(np.array([token], np.intp), _CERTAIN, 1.0)

    @property
    def certain(self) -> int | None:
        """The token of a one-point distribution; None if there is more than one."""
        return int(self.ids[0]) if self.ids is not None and self.ids.size == 1 else None

    @property
    def collision(self) -> float:
        """Σ p²: the chance that two draws agree, and how sure the distribution is."""
        return min(1.0, float(np.dot(self.weights, self.weights)) / self.total**2)

    def at(self, token: int) -> float:
        """Probability of `token`; 0 outside the support."""
        if self.ids is None:
            return float(self.weights[token]) / self.total if token < self.weights.size else 0.0
        index = int(np.searchsorted(self.ids, token))
        if index == self.ids.size or self.ids[index] != token:
            return 0.0
        return float(self.weights[index]) / self.total

    def draw(self, uniform: float) -> int:
        """The token at `uniform` ∈ [0, 1) of the cumulative distribution; never one of weight 0."""
        if self.ids is not None:
            return int(self.ids[_invert(self.weights, uniform * self.total)])
        columns, cumulative = self.weights.size // ROWS, self.cumulative
        assert cumulative is not None
        point = uniform * self.total
        column = _first_above(cumulative, point)
        rest = point - (float(cumulative[column - 1]) if column else 0.0)
        if column == columns:
            return columns * ROWS + _invert(self.weights[columns * ROWS :], rest)
        return column + columns * _invert(self.weights[column : columns * ROWS : columns], rest)

    def overlap(self, other: Distribution) -> float:
        """Σ min(p, q) = 1 - total variation: the chance that the token rule keeps what was drawn from the other."""
        for one, another in ((self, other), (other, self)):
            if (token := one.certain) is not None:
                return another.at(token)
        if self.ids is None and other.ids is None:
            shared = min(self.weights.size, other.weights.size)
            theirs = other.weights[:shared] * (self.total / other.total)
            np.minimum(theirs, self.weights[:shared], out=theirs)
            return min(1.0, float(theirs.sum()) / self.total)
        few, many = (self, other) if other.ids is None or _smaller(self, other) else (other, self)
        assert few.ids is not None
        return min(1.0, float(np.minimum(few.weights / few.total, many._at_each(few.ids)).sum()))

    def residual(self, draft: Distribution, share: float = 1.0) -> Distribution:
        """norm(max(0, share · p - q)), which replaces what was rejected; p itself where p = q leaves nothing.

        Source: Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding", section 2.3;
        with a `share`, Sun et al. 2024, "Block Verification Accelerates Speculative Decoding".
        """
        rest = self.excess(draft, share)
        return rest if rest.total > 0 else self

    def excess(self, draft: Distribution, share: float = 1.0) -> Distribution:
        """max(0, share · p - q) unnormalised: its `total` is the sum of that, which may be 0."""
        if self.ids is None:
            left = self.weights * (share / self.total)
            if draft.ids is None:
                shared = min(left.size, draft.weights.size)
                left[:shared] -= draft.weights[:shared] * (1 / draft.total)
            else:
                known = draft.ids < left.size
                left[draft.ids[known]] -= draft.weights[known] * (1 / draft.total)
        else:
            left = self.weights / self.total * share - draft._at_each(self.ids)
        np.maximum(left, 0, out=left)
        return Distribution.of(left, self.ids)

    def _at_each(self, ids: Ids) -> npt.NDArray[np.float64]:
        """Probability of each of `ids` [n]."""
        if self.ids is None:
            inside = ids < self.weights.size
            return np.where(inside, self.weights[np.where(inside, ids, 0)], 0) / self.total
        index = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        return np.where(self.ids[index] == ids, self.weights[index], 0) / self.total


def _smaller(first: Distribution, second: Distribution) -> bool:
    return first.ids is not None and first.weights.size <= second.weights.size


def _invert(weights: Weights, point: float) -> int:
    """Index at which the running total of `weights` [n] first exceeds `point`."""
    return _first_above(np.cumsum(weights, dtype=np.float64), point)


def _first_above(cumulative: npt.NDArray[np.float64], point: float) -> int:
    """First index whose running total exceeds `point`; the last of weight > 0 if rounding pushed it past the end."""
    index = int(np.searchsorted(cumulative, point, side="right"))
    return index if index < cumulative.size else int(np.searchsorted(cumulative, cumulative[-1]))
