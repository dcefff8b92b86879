"""Where luck comes from: every random decision is a function of a key, with no state that runs along.

`Noise` is keyed by (seed, round, purpose, position): fresh in each round, which the token and the block rule
need. `SharedNoise` is keyed by (seed, place in the text) and shared by all that is drawn there, which is what
the coupled rule is: the text then depends on the seed alone. A decision that was rolled back disturbs no other.
The key is hashed by BLAKE2b (RFC 7693): between two passes over a model, with cold caches, in 14 µs, where
making numpy's Philox takes 90.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Protocol

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.race import winner


class Chance(Protocol):
    """The random decisions of one round."""

    def draft(self, position: int, q: Distribution) -> int:
        """Draw the drafted token at `position` of the block from `q`."""
        ...

    def accept(self, position: int, probability: float) -> bool:
        """Whether the drafted token at `position` is kept: true with `probability`."""
        ...

    def emit(self, position: int, p: Distribution) -> int:
        """Draw from `p` the target's own token for `position` of the block."""
        ...


class ChanceSource(Protocol):
    """A `Chance` for each round."""

    def round(self, index: int, start: int) -> Chance:
        """The decisions of round `index`, whose first token has place `start` in the text, prompt included."""
        ...


class Purpose(IntEnum):
    """What a number decides; two purposes never share one."""

    DRAFT = 0
    ACCEPT = 1
    EMIT = 2


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent in every round. `seed` is in 0..2^64 - 1."""

    seed: int

    def round(self, index: int, start: int) -> RoundNoise:
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

    def emit(self, position: int, p: Distribution) -> int:
        """See `Chance.emit`."""
        return self._draw(p, Purpose.EMIT, position)

    def _draw(self, distribution: Distribution, purpose: Purpose, position: int) -> int:
        """Numbers are a function of their key, so one that could not matter is not worked out."""
        certain = distribution.certain
        return distribution.draw(self.uniform(purpose, position)) if certain is None else certain

    def uniform(self, purpose: Purpose, position: int) -> float:
        """The number in [0, 1), of 53 bits, for one decision."""
        key = struct.pack("<4Q", self.seed, self.index, purpose, position)
        bits = int.from_bytes(blake2b(key, digest_size=8).digest(), "little")
        return (bits >> 11) * 2.0**-53


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """The same for draft and target, in whatever round a place of the text comes up. `seed` is in 0..2^64 - 1."""

    seed: int

    def round(self, index: int, start: int) -> SharedRound:
        """See `ChanceSource.round`."""
        return SharedRound(self.seed, start)


@dataclass(frozen=True, slots=True)
class SharedRound:
    """The `Chance` that `SharedNoise` gives to a round that begins at place `start`."""

    seed: int
    start: int

    def draft(self, position: int, q: Distribution) -> int:
        """See `Chance.draft`."""
        return self.emit(position, q)

    def accept(self, position: int, probability: float) -> bool:
        """Not for rules that decide by an acceptance probability: with noise that a place keeps they are biased."""
        raise RuntimeError("shared noise decides by drawing alone")

    def emit(self, position: int, p: Distribution) -> int:
        """See `Chance.emit`."""
        certain = p.certain
        if certain is not None:
            return certain
        key = struct.pack("<2Q", self.seed, self.start + position)
        digest = blake2b(key, digest_size=16).digest()
        return winner(p, (int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")))
