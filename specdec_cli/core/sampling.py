"""The sampling chain: a row of logits becomes the distribution that the next token is drawn from.

Order and defaults are those of llama.cpp (common/common.h): top-k, top-p, min-p, then temperature. The
filters therefore judge the model's own probabilities, and temperature reshapes what they leave. Both
models of a pair go through the same chain; what comes out of it *is* p and q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import Distribution, Ids
from specdec_cli.core.past import Past
from specdec_cli.core.top_k import Logits, top_k_ids
from specdec_cli.errors import ModelError, UsageError

GREEDY_UP_TO: Final = 1e-4
"""Temperatures up to this one are 0: they could only tell apart logits that differ by less than numeric noise."""

NUCLEUS_STEP: Final = 8
"""Without top-k, top-p looks at the 256 best tokens and then at 8 times more, until they hold its share."""

NOTHING: Final = Past()

Row = TypeVar("Row", npt.NDArray[np.float32], npt.NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class SamplingChain:
    """Temperature 0 is greedy; `top_k` 0, `top_p` 1 and `min_p` 0 each switch that filter off.

    Raises:
        UsageError: a value is outside its range; the message gives the range.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 100:
            raise UsageError(f"--temperature {self.temperature:g} is not in 0..100", hint="0 is greedy")
        if self.top_k < 0:
            raise UsageError(f"--top-k {self.top_k} is below 0", hint="0 switches the filter off")
        if not 0 <= self.top_p <= 1:
            raise UsageError(f"--top-p {self.top_p:g} is not in 0..1", hint="1 switches the filter off")
        if not 0 <= self.min_p <= 1:
            raise UsageError(f"--min-p {self.min_p:g} is not in 0..1", hint="0 switches the filter off")

    @property
    def window(self) -> int:
        """How many tokens before a position its distribution depends on."""
        return 0

    @property
    def greedy(self) -> bool:
        """Whether every distribution of this chain is one token: the most likely one, the lowest id among equals."""
        return self.temperature <= GREEDY_UP_TO or self.top_k == 1

    def distribution(self, logits: Logits, past: Past = NOTHING) -> Distribution:
        """Distribution after the chain, from float32 `logits` [vocabulary] (read, never kept or changed).

        Raises:
            ModelError: the logits hold NaN, or nothing above -inf.
        """
        if self.greedy:
            token = int(logits.argmax())
            _check(float(logits[token]))
            return Distribution.one_hot(token)
        best = float(logits.max())
        _check(best)
        if best == math.inf:
            certain = np.flatnonzero(logits == best)
            return Distribution.of(np.ones(certain.size), certain)
        ids = self._filtered(logits, best)
        if ids is None:
            return Distribution.of(_exponentials(logits, best, self.temperature))
        ids.sort()
        return Distribution.of(_exponentials(logits[ids].astype(np.float64), best, self.temperature), ids)

    def _filtered(self, logits: Logits, best: float) -> Ids | None:
        """Ids that the filters leave, in any order; None if all of them are off."""
        ids: Ids | None = None
        if 0 < self.top_k < logits.size:
            ids = top_k_ids(logits, self.top_k)
        if self.top_p < 1:
            ids = _nucleus(logits, best, self.top_p) if ids is None else ids[: _share(logits[ids], best, self.top_p)]
        if self.min_p > 0:
            floor = best + math.log(self.min_p)
            ids = np.flatnonzero(logits >= floor) if ids is None else ids[logits[ids] >= floor]
        return ids


def _check(best: float) -> None:
    if math.isnan(best) or best == -math.inf:
        raise ModelError(
            "the model answered with logits that are not numbers",
            hint="the file or this quantisation of it may be broken; on a GPU also try --gpu-layers 0",
        )


def _exponentials(logits: Row, best: float, temperature: float) -> Row:
    """exp((logits - best) / temperature) in the type of `logits`."""
    with np.errstate(over="ignore"):  # a logit of -3e38 may become -inf: its weight is 0 either way
        scaled = logits - best
        if temperature != 1:
            scaled *= 1 / temperature
    np.exp(scaled, out=scaled)
    return scaled


def _share(logits: Row, best: float, share: float, total: float | None = None) -> int:
    """How many of `logits` [n], largest first, it takes to hold `share` of `total` (of all n, if not given)."""
    cumulative = np.cumsum(_exponentials(logits.astype(np.float64), best, 1.0))
    wanted = share * (float(cumulative[-1]) if total is None else total)
    return min(int(np.searchsorted(cumulative, wanted)) + 1, cumulative.size)


def _nucleus(logits: Logits, best: float, share: float) -> Ids:
    """Ids of the smallest set of most likely tokens that holds `share` of the whole vocabulary, largest first."""
    total = Distribution.of(_exponentials(logits, best, 1.0)).total
    looked_at = 256
    while True:
        ids = top_k_ids(logits, looked_at)
        needed = _share(logits[ids], best, share, total)
        if needed < ids.size or looked_at >= logits.size:
            return ids[:needed]
        looked_at *= NUCLEUS_STEP
