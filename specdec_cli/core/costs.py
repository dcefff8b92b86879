"""What a round costs: measured once, elsewhere, and frozen, so that no decision depends on a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of one pass over 1, 2, ... tokens: of the `target`, and of the drafters that have a model, by name.

    Beyond what was measured a pass goes on as from the first to the last. A drafter that is not in `drafts` costs
    nothing that counts.
    """

    target: tuple[float, ...]
    drafts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def verify(self, tokens: int) -> float:
        """v(n): a target pass over n = `tokens` tokens, in plain steps of the target."""
        return _at(self.target, tokens) / self.target[0]

    def draft(self, source: str, length: int, unseen: int) -> float:
        """Drafting `length` tokens, in plain steps; the first step also reads `unseen` - 1 tokens of the text."""
        if length == 0 or source not in self.drafts:
            return 0.0
        step = self.drafts[source]
        return (_at(step, unseen) + (length - 1) * step[0]) / self.target[0]


def median_costs(several: Sequence[Costs]) -> Costs:
    """The usual one of `several` of one pair, pass by pass."""
    drafts = {name: _medians([each.drafts[name] for each in several]) for name in several[0].drafts}
    return Costs(_medians([each.target for each in several]), drafts)


def _medians(several: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(map(median, zip(*several, strict=True)))


def _at(seconds: Sequence[float], tokens: int) -> float:
    if tokens <= len(seconds):
        return seconds[tokens - 1]
    slope = max(seconds[-1] - seconds[0], 0.0) / max(len(seconds) - 1, 1)
    return seconds[-1] + (tokens - len(seconds)) * slope
