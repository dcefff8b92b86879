"""What there is to say of a distribution at a glance: its entropy, and its likeliest tokens.

Error: the entropy of a dense distribution is summed in float32, and within 1e-4 nats of the same sum in float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from specdec_cli.core.distribution import Distribution, Weights
from specdec_cli.core.top_k import top_k_ids

FEW: Final = 64
"""So many probabilities are summed and sorted faster as Python's own numbers."""
RAREST: Final = 0.001
"""A law of any size has few tokens of this probability and more, which one look finds."""
TINY: Final = np.float32(1.2e-38)
"""Makes a weight 0 one with a logarithm, and changes no other that counts: the smallest that is never taken for 0."""

Likely = tuple[tuple[int, float], ...]
"""Tokens and their probabilities, the likeliest first, the lowest id first among equals."""


@dataclass(frozen=True, slots=True)
class Outline:
    """Of the distribution `law`: its `entropy` in nats, and its `likeliest` tokens."""

    law: Distribution
    entropy: float
    likeliest: Likely
    _all: Mapping[int, float] | None = None

    def at(self, token: int) -> float:
        """Probability of `token`; 0 outside the support."""
        return self.law.at(token) if self._all is None else self._all.get(token, 0.0)


def outline(law: Distribution, count: int) -> Outline:
    """The outline of `law` with its `count` likeliest tokens: of those that have `RAREST` at least, if any has."""
    if (token := law.certain) is not None:
        return Outline(law, 0.0, ((token, 1.0),)[:count], {token: 1.0})
    if law.ids is not None and law.ids.size <= FEW:
        return _of_few(law, count)
    return Outline(law, _entropy(law.weights, law.total), _likeliest(law, count) if count else ())


def _likeliest(law: Distribution, count: int) -> Likely:
    weights = law.weights
    found = np.flatnonzero(weights >= weights.dtype.type(law.total * RAREST))
    found = found[np.argsort(-weights[found], kind="stable")[:count]] if found.size else top_k_ids(weights, count)
    ids = found if law.ids is None else law.ids[found]
    return tuple(zip(ids.tolist(), (weights[found] / law.total).tolist(), strict=True))


def _of_few(law: Distribution, count: int) -> Outline:
    assert law.ids is not None
    chances = (law.weights / law.total).tolist()
    known = dict(zip(law.ids.tolist(), chances, strict=True))
    entropy = -sum(chance * math.log(chance) for chance in chances if chance > 0)
    likely = [one for one in known.items() if one[1] >= RAREST]
    likely.sort(key=lambda one: one[1], reverse=True)
    return Outline(law, max(entropy, 0.0), tuple(likely[:count]), known)


def _entropy(weights: Weights, total: float) -> float:
    """ln W - Σ w ln w / W, from weights [n] and their total W; in base 2, which numpy has faster."""
    logarithms = weights + TINY
    np.log2(logarithms, out=logarithms)
    return max(math.log(total) - math.log(2) * float(np.dot(logarithms, weights)) / total, 0.0)
