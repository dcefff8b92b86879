"""Where luck comes from: every random decision is a function of (seed, purpose, round, position) only.

Counter-based (Philox, Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): no state runs
along, so a rolled-back position or a changed draft length disturbs no other decision. Each round has fresh
noise, which the token rule needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

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

    DRAFT = 0
    ACCEPT = 1
    EMIT = 2


AT_ONCE: Final = 64
"""Numbers worked out together: making a generator costs as much as a thousand of them."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a run. `seed` is in 0..2^64 - 1."""

    seed: int

    def round(self, index: int) -> RoundNoise:
        """See `ChanceSource.round`."""
        return RoundNoise(self.seed, index)


class RoundNoise:
    """The `Chance` that `Noise` gives to round `index`."""

    def __init__(self, seed: int, index: int) -> None:
        self._key = np.array([seed, index], np.uint64)
        self._numbers: list[float] = []

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
        at = len(Purpose) * position + purpose
        if at >= len(self._numbers):
            raw = np.random.Philox(key=self._key).random_raw(max(AT_ONCE, 2 * at))
            self._numbers = ((raw >> np.uint64(11)) * 2.0**-53).tolist()
        return self._numbers[at]
