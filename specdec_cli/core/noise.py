"""Where luck comes from: every random decision is a function of (seed, purpose, round, position) only.

Counter-based (Philox, Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): no state runs
along, so a rolled-back position or a changed draft length disturbs no other decision. Each round has fresh
noise, which the token rule needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from specdec_cli.core.distribution import Distribution


class Chance(Protocol):
    """The random decisions of one round."""

    def draft(self, position: int, q: Distribution) -> int:
        """Draw the drafted token at `position` of the block from `q`."""
        ...

    def accept(self, position: int, probability: float) -> bool:
        """Whether the drafted token at `position` is kept: true with `probability`."""
        ...

    def emit(self, p: Distribution) -> int:
        """Draw the token that ends the round."""
        ...


class ChanceSource(Protocol):
    """A fresh `Chance` for each round."""

    def round(self, index: int) -> Chance:
        """The decisions of round `index`, independent of those of every other round."""
        ...


class Purpose(IntEnum):
    """What a number decides; two purposes never share one."""

    DRAFT = 1
    ACCEPT = 2
    EMIT = 3


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a run. `seed` is in 0..2^64 - 1."""

    seed: int

    def round(self, index: int) -> RoundNoise:
        """See `ChanceSource.round`."""
        return RoundNoise(self.seed, index)


@dataclass(frozen=True, slots=True)
class RoundNoise:
    """The `Chance` that `Noise` gives to round `index`."""

    seed: int
    index: int

    def draft(self, position: int, q: Distribution) -> int:
        """See `Chance.draft`."""
        return self._draw(q, Purpose.DRAFT, position)

    def accept(self, position: int, probability: float) -> bool:
        """See `Chance.accept`."""
        return probability >= 1 or (probability > 0 and self.uniform(Purpose.ACCEPT, position) < probability)

    def emit(self, p: Distribution) -> int:
        """See `Chance.emit`."""
        return self._draw(p, Purpose.EMIT, 0)

    def _draw(self, distribution: Distribution, purpose: Purpose, position: int) -> int:
        """Numbers are a function of their key, so one that could not matter is not worked out."""
        certain = distribution.certain
        return distribution.draw(self.uniform(purpose, position)) if certain is None else certain

    def uniform(self, purpose: Purpose, position: int) -> float:
        """The number in [0, 1), of 53 bits, for one decision."""
        key = np.array([self.seed, purpose], np.uint64)
        bits = np.random.Philox(key=key, counter=[0, 0, position, self.index])
        return float(int(bits.random_raw()) >> 11) * 2.0**-53
