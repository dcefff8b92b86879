"""The laws that an audit holds a sampler to: written down once more, in float64, apart from the engine's own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import Distribution, Ids
from specdec_cli.core.top_k import Logits

Law = npt.NDArray[np.float64]
"""The probability of each token, [vocabulary]."""


def softmax(logits: Logits, banned: Ids) -> Law:
    """What a model says at temperature 1, without the `banned` tokens."""
    row = logits.astype(np.float64)
    row[banned] = -np.inf
    weights = np.exp(row - row.max())
    return np.asarray(weights / weights.sum())


def probabilities(distribution: Distribution, size: int) -> Law:
    """Those of `distribution` for tokens 0..size - 1, which are all that it knows."""
    law = np.zeros(size)
    places = slice(distribution.weights.size) if distribution.ids is None else distribution.ids
    law[places] = distribution.weights
    return np.asarray(law / law.sum())


def rank(law: Law, token: int) -> float:
    """Where `token` stands, 0 for the likeliest to 1: the share of what is likelier, and half of what is as likely.

    For a token of that law its mean is 1/2 whatever the law, and e^(λ·rank) is at most that of a uniform number.
    """
    ours = law[token]
    return float(law[law > ours].sum() + law[law == ours].sum() / 2)


def residual(p: Law, q: Law, share: float = 1.0) -> Law:
    """What replaces a rejected token: norm(max(0, share · p - q)), or p where that is nothing."""
    rest = np.maximum(share * p - q, 0)
    total = float(rest.sum())
    return np.asarray(rest / total) if total > 0 else p


def distance(one: Law, other: Law) -> float:
    """Total variation: the largest difference between what the two give to any set of tokens, 0..1."""
    return float(np.abs(one - other).sum() / 2)
