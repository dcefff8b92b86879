"""How long a tuning may take: the clock decides how many runs there are, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

Clock = Callable[[], float]


@dataclass(slots=True)
class Budget:
    """Seconds until `end` on `clock`, and how long a run of each kind takes, by the latest ones."""

    clock: Clock
    end: float
    each: dict[str, float] = field(default_factory=dict)

    @property
    def left(self) -> float:
        """Seconds left; never below 0."""
        return max(0.0, self.end - self.clock())

    def note(self, kind: str, seconds: float) -> None:
        """Take note that a run of `kind` took so long."""
        before = self.each.get(kind)
        self.each[kind] = seconds if before is None else 0.7 * before + 0.3 * seconds

    def until(self, share: float) -> float:
        """When that share, 0..1, of what is left will be spent, on `clock`."""
        return self.clock() + share * self.left

    def runs(self, kind: str, until: float) -> float:
        """How many runs of `kind` there is time for; endless while nothing is known of one."""
        left, seconds = until - self.clock(), self.each.get(kind, 0.0)
        if left <= 0:
            return 0.0
        return left / seconds if seconds else math.inf
