"""How likely an emitted token was, and what else could have come: by the model alone and after the sampling chain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.top_k import Logits, top_k_ids


@dataclass(frozen=True, slots=True)
class Logprob:
    """Natural logarithms of the probabilities of `token`: of the model itself, and of p; -inf where p is 0."""

    token: int
    raw: float
    chain: float


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """An emitted token, and the tokens that the model itself found most likely in its place, the best first."""

    emitted: Logprob
    best: tuple[Logprob, ...]


def token_logprobs(logits: Logits, p: Distribution, token: int, count: int) -> TokenLogprobs:
    """`token` at the position that `logits` [vocabulary] are for and p is after the chain; `count` best tokens.

    p is the target's law of the position for accepted, corrected and bonus tokens alike, since that is the law
    that each of them has.
    """
    best = [int(each) for each in top_k_ids(logits, count)] if count else []
    if logits.max() == np.inf:  # these leave no chance to the others, and are all alike
        logits = np.where(logits == np.inf, np.float32(0), np.float32(-np.inf))
    highest = float(logits.max())
    whole = highest + math.log(float(np.exp(logits - highest, dtype=np.float64).sum()))
    found = [Logprob(each, float(logits[each]) - whole, _log(p.at(each))) for each in (token, *best)]
    return TokenLogprobs(found[0], tuple(found[1:]))


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
