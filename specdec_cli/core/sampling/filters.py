"""The filters of the chain: each takes candidates and returns the fewer ones that it leaves.

None of them sorts a vocabulary where a part will do: the best few are found first, and more only if they
are needed. What each one keeps is what llama.cpp's sampler of the same name keeps (src/llama-sampler.cpp).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from specdec_cli.core.distribution import Ids, Weights, column_sums
from specdec_cli.core.sampling.candidates import Candidates, total_of
from specdec_cli.core.top_k import Logits, top_k_ids

LOOK_FIRST: Final = 256
LOOK_STEP: Final = 8
"""Where a part of the vocabulary may do, the 256 best tokens are looked at first, then 8 times more, or all."""

GREEDY_UP_TO: Final = 1e-4
"""Temperatures up to this one are 0: they could only tell apart logits that differ by less than numeric noise."""

LARGEST_XTC_THRESHOLD: Final = 0.5
"""Above it no two tokens can be meant."""

LOWEST: Final = float(np.finfo(np.float32).min)

WEIGHTLESS: Final = -104.0
"""The exponential of anything below is 0 in float32."""


def wider_look(looked_at: int, size: int) -> int:
    """How many of `size` tokens to look at when the best `looked_at` did not do."""
    more = looked_at * LOOK_STEP
    return more if 2 * more < size else size


def temperature(candidates: Candidates, value: float) -> Candidates:
    """At temperature `value`; 0, and what is as good as 0, leaves the best token."""
    return candidates.best_only() if value <= GREEDY_UP_TO else candidates.scaled(value)


def top_k(candidates: Candidates, k: int) -> Candidates:
    """The `k` best."""
    if k == 1:
        return candidates.best_only()
    return candidates if k >= candidates.size else candidates.first(k)


def top_p(candidates: Candidates, share: float) -> Candidates:
    """The smallest set of best tokens that holds at least `share` of the probability, but at least one."""
    weights = candidates.weights()
    if candidates.ranked:
        cumulative = np.cumsum(weights)
        return candidates.first(int(np.searchsorted(cumulative, share * float(cumulative[-1]))) + 1)
    positions = _first_holding(share * total_of(weights), weights, candidates.logits)
    return candidates.keep(positions, ranked=True)


def min_p(candidates: Candidates, share: float) -> Candidates:
    """Those at least `share` times as likely as the best."""
    return _at_least(candidates, min_p_floor(candidates, share))


def min_p_floor(candidates: Candidates, share: float) -> np.float32:
    """The lowest logit that `min_p` keeps, as it is compared."""
    return np.float32(candidates.best + candidates.scale * math.log(share))


def typical(candidates: Candidates, share: float) -> Candidates:
    """Those whose surprise is nearest to the expected one, until they hold more than `share` of the probability.

    A surprise is log(total) - exponent, so its distance from the entropy is that of an exponent from the
    mean exponent. Source: Meister et al. 2023, "Locally Typical Sampling", section 4.
    """
    exponents = np.maximum(candidates.exponents(), WEIGHTLESS)
    weights = np.exp(exponents)
    total = total_of(weights)
    nearness = -np.abs(exponents - total_of(weights * exponents) / total)
    positions = np.sort(_first_holding(share * total, weights, nearness, more=True))
    return candidates.keep(positions, ranked=candidates.ranked)


def top_n_sigma(candidates: Candidates, sigmas: float) -> Candidates:
    """Those whose logit is at most `sigmas` standard deviations (of all logits) below the best.

    Source: Tang et al. 2024, "Top-nσ: Not All Logits Are You Need", section 3.
    """
    floor = candidates.best - sigmas * _deviation(candidates.logits)
    return _at_least(candidates, np.float32(max(floor, LOWEST)))


def without_top(candidates: Candidates, threshold: float) -> Candidates:
    """Without those of probability `threshold` or more, save the least likely of them: XTC where it strikes.

    The very candidates if that leaves out none.
    """
    weights = candidates.weights()
    top = np.flatnonzero((weights >= threshold * total_of(weights)) & (candidates.logits > -np.inf))
    if top.size < 2:
        return candidates
    last = top.size - 1 - int(candidates.logits[top][::-1].argmin())
    out = np.delete(top, last)
    if candidates.ids is not None:
        return candidates.keep(np.delete(np.arange(candidates.size), out), ranked=candidates.ranked)
    row = candidates.logits.copy()
    row[out] = -np.inf
    return candidates.with_logits(row)


def _at_least(candidates: Candidates, floor: np.float32) -> Candidates:
    """Those with a logit of `floor` or more, which is above -inf."""
    inside = candidates.logits >= floor
    return candidates.first(int(inside.sum())) if candidates.ranked else candidates.keep(np.flatnonzero(inside))


def _first_holding(wanted: float, weights: Weights, ranking: Weights, *, more: bool = False) -> Ids:
    """Positions of the fewest of the highest `ranking` [n] whose `weights` [n] sum to `wanted` (or to `more`)."""
    looked_at = LOOK_FIRST
    while True:
        positions = top_k_ids(ranking, looked_at)
        cumulative = np.cumsum(weights[positions], dtype=np.float64)
        needed = int(np.searchsorted(cumulative, wanted, side="right" if more else "left")) + 1
        if needed <= positions.size or looked_at >= ranking.size:
            return positions[:needed]
        looked_at = wider_look(looked_at, ranking.size)


def _deviation(logits: Logits) -> float:
    """Standard deviation of those of `logits` [n] that are above -inf."""
    with np.errstate(over="ignore", invalid="ignore"):
        from_mean = logits - logits.mean()
        variance = float(column_sums(from_mean * from_mean).sum()) / logits.size
    if math.isfinite(variance):
        return math.sqrt(variance)
    return float(logits[logits > -np.inf].std(dtype=np.float64))
