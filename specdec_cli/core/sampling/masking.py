"""Restricting candidates to what a mask allows, asking about as few tokens as will do.

A grammar takes tens of milliseconds to judge a vocabulary and well under one to judge 256 tokens. So the best
are asked about first, and more only as long as the rest could change what the next filters leave. The outcome
is that of a row with -inf wherever the mask says no.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from specdec_cli.core.distribution import Ids
from specdec_cli.core.past import Mask
from specdec_cli.core.sampling.candidates import Candidates, total_of
from specdec_cli.core.sampling.filters import LOOK_FIRST, WEIGHTLESS, min_p_floor, wider_look
from specdec_cli.core.top_k import top_k_ids
from specdec_cli.errors import UsageError

LARGEST_EXPONENT: Final = 700.0
"""The exponential of this is still a number."""


class NothingAllowedError(UsageError):
    """A mask leaves no token that the model could say."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the filters right behind the mask do; each value is None where that filter is not there.

    `top_k` is the first, and `top_p` or `min_p` follows at once; `weighty` where tokens that weigh nothing
    in float32 make no difference either.
    """

    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    weighty: bool = False

    def is_settled(self, candidates: Candidates, looked_at: Ids, found: Candidates) -> bool:
        """Whether all that is not `looked_at` [n, by rank] would change nothing behind the filters.

        `found` are the allowed ones so far, ranked, at least one.
        """
        if self.top_k is not None and found.size >= self.top_k:
            return True
        lowest = float(candidates.logits[looked_at[-1]])
        exponent = (lowest - found.best) / found.scale
        if self.weighty and exponent < WEIGHTLESS:
            return True
        if self.min_p is not None:
            return lowest < float(min_p_floor(found, self.min_p))
        if self.top_p is None:
            return False
        if self.top_k is not None:
            unseen = (self.top_k - found.size) * math.exp(min(exponent, 0))
        else:
            unseen = _weight_besides(candidates, looked_at, found.best)
        return _nucleus_is_known(found, self.top_p, unseen)


def masked(candidates: Candidates, mask: Mask, outlook: Outlook) -> Candidates:
    """Those that `mask` allows; without some of them where `outlook` says that they make no difference.

    Raises:
        NothingAllowedError: none is allowed.
    """
    looked_at, found = np.empty(0, np.intp), np.empty(0, np.intp)
    count = LOOK_FIRST
    while count < candidates.size:
        ranked = top_k_ids(candidates.logits, count)
        found = np.concatenate([found, _allowed(candidates, mask, ranked[looked_at.size :])])
        looked_at = ranked
        if found.size:
            best = candidates.keep(found, ranked=True)
            if outlook.is_settled(candidates, looked_at, best):
                return best
        count = wider_look(count, candidates.size)
    rest = np.delete(np.arange(candidates.size), looked_at)
    found = np.sort(np.concatenate([found, _allowed(candidates, mask, rest)]))
    if not found.size:
        raise NothingAllowedError(
            "the grammar allows no token here",
            hint="the vocabulary may lack what it asks for, or --logit-bias bans it",
        )
    return candidates.keep(found)


def _allowed(candidates: Candidates, mask: Mask, positions: Ids) -> Ids:
    """Those of `positions` that are above -inf and that `mask` allows."""
    possible = positions[candidates.logits[positions] > -np.inf]
    return possible[mask.allowed(candidates.ids_at(possible))]


def _weight_besides(candidates: Candidates, looked_at: Ids, best: float) -> float:
    """The weight of all `candidates` that are not `looked_at`, where a logit of `best` weighs 1."""
    weights = candidates.weights()
    weights[looked_at] = 0
    return total_of(weights) * math.exp(min((candidates.best - best) / candidates.scale, LARGEST_EXPONENT))


def _nucleus_is_known(found: Candidates, share: float, unseen: float) -> bool:
    """Whether tokens of up to `unseen` weight more, each less likely, would leave the same for top-p to keep."""
    cumulative = np.cumsum(found.weights())
    total = float(cumulative[-1])
    least, most = np.searchsorted(cumulative, [share * total, share * (total + unseen)]).tolist()
    return bool(least == most)
