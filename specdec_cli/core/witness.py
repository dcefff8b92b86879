"""Luck that is looked at: the same decisions as those of the noise inside, and a record of what each came from."""

from __future__ import annotations

from dataclasses import dataclass, field

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance, ChanceSource, Purpose, RoundNoise


@dataclass(frozen=True, slots=True)
class Decision:
    """A drafted token is kept, by the block rule with all before it, if `draw` is below `probability`.

    `draw` is None where no number was needed, since the probability is 0 or 1.
    """

    probability: float
    draw: float | None
    kept: bool


@dataclass(frozen=True, slots=True)
class Emission:
    """The target's own token of a round was drawn from `law`, at `draw` of its cumulative distribution.

    `draw` is None where the law is certain, and for shared noise, which draws by a race.
    """

    law: Distribution
    draw: float | None


@dataclass(frozen=True, slots=True)
class Witness:
    """A `ChanceSource` whose rounds remember what they decided."""

    noise: ChanceSource

    def round(self, index: int, start: int) -> WitnessedRound:
        """See `ChanceSource.round`."""
        return WitnessedRound(self.noise.round(index, start))


@dataclass(slots=True)
class WitnessedRound:
    """A `Chance` with its `decisions` by position, as many as were asked for, and its last `emission`."""

    chance: Chance
    decisions: dict[int, Decision] = field(default_factory=dict)
    emission: Emission | None = None

    def draft(self, position: int, q: Distribution) -> int:
        """See `Chance.draft`."""
        return self.chance.draft(position, q)

    def accept(self, position: int, probability: float) -> bool:
        """See `Chance.accept`."""
        kept = self.chance.accept(position, probability)
        draw = self._draw(Purpose.ACCEPT, position) if 0 < probability < 1 else None
        self.decisions[position] = Decision(probability, draw, kept)
        return kept

    def emit(self, position: int, p: Distribution) -> int:
        """See `Chance.emit`."""
        self.emission = Emission(p, self._draw(Purpose.EMIT, position) if p.certain is None else None)
        return self.chance.emit(position, p)

    def _draw(self, purpose: Purpose, position: int) -> float | None:
        return self.chance.uniform(purpose, position) if isinstance(self.chance, RoundNoise) else None
