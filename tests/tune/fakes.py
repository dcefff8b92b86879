"""A course without models: speeds are a function of the setting, and a run takes as long as its speed says."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from specdec_cli.core.costs import Costs
from specdec_cli.core.stats import Counters
from specdec_cli.tune.budget import Budget
from specdec_cli.tune.finding import Finding
from specdec_cli.tune.organiser import Organiser
from specdec_cli.tune.setting import Chain, Setting
from specdec_cli.tune.tuning import Tuning

TOKENS = 32
PROMPTS = 4
SAMPLED = (1, 3)


class FakeClock:
    """Says what it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeCourse:
    """Speeds by `law` (setting and prompt), with noise of that spread as a logarithm; runs take time on `clock`."""

    law: Callable[[Setting, int], float]
    noise: float = 0.0
    passes: Costs | None = None
    counted: Counters = field(default_factory=Counters)
    clock: FakeClock = field(default_factory=FakeClock)
    runs: list[tuple[Setting, int]] = field(default_factory=list)
    reading: Callable[[Setting], float] = lambda _: 400.0
    luck: random.Random = field(default_factory=lambda: random.Random(1))

    prompts = PROMPTS
    sampled = SAMPLED

    def speed(self, setting: Setting, cell: int) -> float | None:
        self.runs.append((setting, cell))
        speed = self.law(setting, cell % PROMPTS) * math.exp(self.luck.gauss(0, self.noise))
        self.clock.now += TOKENS / speed
        return speed

    def prompt_speed(self, setting: Setting, cell: int) -> float | None:
        speed = self.reading(setting)
        self.clock.now += 256 / speed
        return speed

    def costs(self, setting: Setting) -> Costs | None:
        return self.passes

    def counters(self, chain: Chain) -> Counters:
        return self.counted


def tune(
    course: FakeCourse, start: Setting, *, seconds: float = 180, cpus: int = 1, fixed: tuple[str, ...] = ()
) -> Finding:
    """A tuning of so many seconds on `course`."""
    organiser = Organiser(Budget(course.clock, course.clock.now + seconds), fixed, lambda *_: None)
    return Tuning(course, organiser, start, cpus).find()
