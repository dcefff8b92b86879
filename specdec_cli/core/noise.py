"""Where luck comes from: every random decision is a function of (seed, purpose, round, position) only.

The number is a hash of its key (BLAKE2b, RFC 7693): no state runs along, so a rolled-back position or a
changed draft length disturbs no other decision, and a generator need not be made (numpy's Philox takes 90 µs
between two passes over a model, this 14). Each round has fresh noise, which the token rule needs.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Protocol

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
        key = struct.pack("<4Q", self.seed, self.index, purpose, position)
        bits = int.from_bytes(blake2b(key, digest_size=8).digest(), "little")
        return (bits >> 11) * 2.0**-53
