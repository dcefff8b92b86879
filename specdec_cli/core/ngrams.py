"""A table of n-grams as a language model: counts of short token sequences, interpolated into a distribution.

Absolute discounting (Ney, Essen and Kneser 1994, "On structuring probabilistic dependences in stochastic language
modelling"): of every count c behind a context a part d is taken away, and what is taken goes to the distribution of
the context without its first token,

    q(x | h) = max(c(h, x) - d, 0) / c(h) + Σ min(c(h, ·), d) / c(h) · q(x | h without its first token),

down to single tokens and, below those, to every token alike. So q is a proper distribution that gives no token 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from specdec_cli.core.top_k import Logits

UNIT: Final = 16
"""Counts are kept in sixteenths: what a target gave a token that it did not draw counts by its probability."""
DISCOUNTS: Final = (0.5, 0.7, 0.8)
"""d for n-grams of one, two, and three or more tokens. Of seven choices the best on 3,000 positions of SmolLM2, or as
good: Σ min(p, q) 0.272 from 78,000 drawn tokens, 0.286 from their probabilities; with halved ones 0.267 and 0.288."""
BITS: Final = 20
"""Of a key, for the token: there is no vocabulary of a million."""

Keys = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The n-grams of one length, ascending by key: where its first n - 1 tokens are on the level before, and the last.

    `counts` are in 1 / `UNIT`, 0 for one that only others go on from.
    """

    keys: Keys
    counts: Counts

    @property
    def parents(self) -> Keys:
        """Places on the level before."""
        return self.keys >> BITS

    @property
    def tokens(self) -> Keys:
        """The last token of each n-gram."""
        return self.keys & ((1 << BITS) - 1)

    def find(self, parents: Keys, tokens: Keys) -> Keys:
        """Places of the n-grams that go on from `parents` [m] with `tokens` [m]; -1 for one that is not there."""
        wanted = to_keys(parents, tokens)
        places = np.minimum(np.searchsorted(self.keys, wanted), max(len(self.keys) - 1, 0))
        known = self.keys[places] == wanted if len(self.keys) else np.zeros(len(wanted), bool)
        return np.where(known, places, -1)

    def place(self, parent: int, token: int) -> int:
        """As `find`, of one n-gram: a tenth of the time."""
        wanted = (parent << BITS) | token
        place = int(self.keys.searchsorted(wanted))
        return place if place < len(self.keys) and self.keys[place] == wanted else -1

    def after(self, parent: int) -> slice:
        """Where the n-grams are that go on from `parent`."""
        first, last = np.searchsorted(self.keys, (parent << BITS, (parent + 1) << BITS))
        return slice(int(first), int(last))


def to_keys(parents: Keys, tokens: Keys) -> Keys:
    """Keys of a level."""
    return (parents << BITS) | tokens


@dataclass(frozen=True)
class NgramTable:
    """A table over ids 0..`vocabulary` - 1. `levels[n - 1]` are its n-grams; their beginnings are on the level before.

    The drafter's distributions are those that `logits` gives after its sampling chain.
    """

    vocabulary: int
    levels: tuple[Level, ...]

    @property
    def order(self) -> int:
        """The longest n-grams that it can hold."""
        return len(self.levels)

    @property
    def size(self) -> int:
        """How many n-grams it holds."""
        return sum(len(level.keys) for level in self.levels)

    @property
    def tokens(self) -> float:
        """From how many tokens it was counted, but for rounding."""
        return float(self.levels[0].counts.sum(dtype=np.uint64)) / UNIT

    def logits(self, context: Sequence[int]) -> Logits:
        """log q [vocabulary] of what follows `context`, as float32; a row of its own."""
        known = [self._behind(context[-length:]) for length in range(1, min(self.order - 1, len(context)) + 1)]
        seen = [each for each in known if each is not None]
        row = self._single + np.float32(math.log(math.prod(each.left for each in seen)))
        left = 1.0
        for each in reversed(seen):  # one by one: to sort out which tokens several of them know takes longer
            row[each.tokens] = np.log(np.exp(row[each.tokens], dtype=np.float64) + each.shares * left)
            left *= each.left
        return row

    @cached_property
    def _single(self) -> Logits:
        """log q [vocabulary] behind nothing."""
        behind = _discounted(self.levels[0], slice(0, None), DISCOUNTS[0])
        q = np.full(self.vocabulary, (behind.left if behind else 1.0) / self.vocabulary)
        if behind:
            q[behind.tokens] += behind.shares
        logits: Logits = np.log(q).astype(np.float32)
        return logits

    def _behind(self, context: Sequence[int]) -> _Behind | None:
        """What follows all of `context` in the table; None if nothing does."""
        place = 0
        for level, token in zip(self.levels, context, strict=False):
            place = level.place(place, token)
            if place < 0:
                return None
        level = self.levels[len(context)]
        return _discounted(level, level.after(place), DISCOUNTS[min(len(context), len(DISCOUNTS) - 1)])


@dataclass(frozen=True, slots=True, eq=False)
class _Behind:
    """`tokens` [m] behind one context with `shares` [m] of its probability; what is `left` goes to shorter ones."""

    tokens: Keys
    shares: npt.NDArray[np.float64]
    left: float


def _discounted(level: Level, places: slice, discount: float) -> _Behind | None:
    counts = level.counts[places] / UNIT
    total = float(counts.sum())
    if total == 0:
        return None
    taken = np.minimum(counts, discount)
    tokens = level.keys[places] & ((1 << BITS) - 1)  # not those of the whole level, which are many
    return _Behind(tokens, (counts - taken) / total, float(taken.sum()) / total)
