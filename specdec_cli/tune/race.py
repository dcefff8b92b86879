"""A race of settings: the same cells for all, in turns, until one is fastest beyond what chance does.

Cell i is an answer to prompt i modulo the number of prompts. All that still run have run the same cells, so they are
compared cell by cell. How much two runs of one prompt differ is noise; that a setting is better at one kind of prompt
than at another is not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist, fmean
from typing import Final, Generic, TypeVar

from specdec_cli.errors import SpecdecError

Contender = TypeVar("Contender")

EXPECTED_NOISE, EXPECTED_RUNS = 0.06, 4
"""The spread of a logarithm of a ratio before there are repeats to see it by, and how many that belief is worth."""
ERRORS: Final = 2.0
"""Standard errors by which a setting is beaten that has a simpler one beside it, and to both sides of a range."""
ERRORS_OF_SIMPLEST: Final = 3.5
"""Those by which the simplest is: it is looked at after every cell, and chance would have its way with less."""
LUCK: Final = 0.025
"""How likely the last look takes another one of equal settings than the simplest, however many there are."""
LEAST_GAIN: Final = 0.01
"""As a logarithm: what is less is not worth another setting."""
LEAST_CELLS: Final = 2
"""Before anything is decided: one run may have met a busy machine."""
HOPELESS: Final = -math.log(0.6)
"""The logarithm of a ratio at which the slower one is dropped though not every prompt was run."""


@dataclass(slots=True)
class Lane(Generic[Contender]):
    """What one contender did: tokens a second by cell, and why it runs no more, if so."""

    contender: Contender
    speeds: dict[int, float] = field(default_factory=dict)
    out: str = ""

    @property
    def speed(self) -> float | None:
        """Tokens a second, the geometric mean of its cells; None without any."""
        return math.exp(fmean(map(math.log, self.speeds.values()))) if self.speeds else None


@dataclass(frozen=True, slots=True)
class Margin:
    """How much faster one is than another: the logarithm of the ratio, and the standard error of it."""

    mean: float
    error: float

    @property
    def spread(self) -> float:
        """What to give or take."""
        return ERRORS * self.error

    def is_gain(self, errors: float) -> bool:
        """Whether it is faster by more than so many standard errors, and worth a change."""
        return self.mean > max(errors * self.error, LEAST_GAIN)


def compare(one: dict[int, float], other: dict[int, float], prompts: int) -> Margin | None:
    """How much faster `one` is than `other`, by the cells that both ran, every prompt alike; None without any."""
    by_prompt: defaultdict[int, list[float]] = defaultdict(list)
    for cell in one.keys() & other.keys():
        by_prompt[cell % prompts].append(math.log(one[cell] / other[cell]))
    if not by_prompt:
        return None
    means = {prompt: fmean(each) for prompt, each in by_prompt.items()}
    squares = sum((value - means[prompt]) ** 2 for prompt, each in by_prompt.items() for value in each)
    repeats = sum(len(each) - 1 for each in by_prompt.values())
    variance = (EXPECTED_RUNS * EXPECTED_NOISE**2 + squares) / (EXPECTED_RUNS + repeats)
    error = math.sqrt(variance * sum(1 / len(each) for each in by_prompt.values())) / len(by_prompt)
    return Margin(fmean(means.values()), error)


class Race(Generic[Contender]):
    """Lanes of `contenders`, the simplest first, over `prompts` prompts.

    `run` is the speed of a contender in a cell, None if that says nothing, such as an answer without a token. None is
    dropped for being slower before `least` passes over all prompts. The `reference` runs along and cannot win.
    """

    def __init__(
        self,
        contenders: Sequence[Contender],
        run: Callable[[Contender, int], float | None],
        *,
        prompts: int,
        least: int = 1,
        reference: Contender | None = None,
    ) -> None:
        self.lanes = [Lane(each) for each in contenders]
        self.reference = None if reference is None else Lane(reference)
        self.prompts = prompts
        self.cells = 0
        self._run = run
        self._needed = max(prompts, LEAST_CELLS)
        self._least = max(least * prompts, LEAST_CELLS)

    @property
    def running(self) -> list[Lane[Contender]]:
        """Those that are not out."""
        return [lane for lane in self.lanes if not lane.out]

    @property
    def is_decided(self) -> bool:
        """Whether every prompt was run, so that the winner means something."""
        return self.cells >= self._needed

    def run_cell(self) -> None:
        """Let all that still run answer once more, in turned order each time, and drop those that are beaten.

        A contender that fails is out.

        Raises:
            SpecdecError: the last one fails.
        """
        along = [] if self.reference is None or self.reference.out else [self.reference]
        lanes = self.running + along
        for lane in lanes if self.cells % 2 == 0 else lanes[::-1]:
            try:
                speed = self._run(lane.contender, self.cells)
            except SpecdecError as error:
                lane.out = f"failed: {error.message}"
                if not self.running:
                    raise
                continue
            if speed:
                lane.speeds[self.cells] = speed
        self.cells += 1
        self._drop()

    def _drop(self) -> None:
        best, simplest = self.fastest(), self.running[0]
        for lane in self.running:
            margin = compare(best.speeds, lane.speeds, self.prompts)
            if lane is best or margin is None:
                continue
            errors = ERRORS_OF_SIMPLEST if lane is simplest else ERRORS
            beaten = self.cells >= self._least and margin.is_gain(errors)
            if beaten or (self.cells >= LEAST_CELLS and self._least <= self._needed and margin.mean > HOPELESS):
                lane.out = f"slower, after {self.cells} runs"

    def fastest(self) -> Lane[Contender]:
        """The one that is fastest so far, the first of equal ones."""
        first = self.running[0]

        def lead(lane: Lane[Contender]) -> float:
            margin = compare(lane.speeds, first.speeds, self.prompts)
            return 0.0 if margin is None else margin.mean

        return max(self.running, key=lead)

    def winner(self) -> Lane[Contender]:
        """The simplest one that the fastest does not beat; the simplest of all while nothing is decided."""
        if not self.is_decided:
            return self.running[0]
        best = self.fastest()
        errors = NormalDist().inv_cdf(1 - LUCK / max(len(self.lanes) - 1, 1))
        for lane in self.running:
            margin = compare(best.speeds, lane.speeds, self.prompts)
            if lane is best or (margin is not None and not margin.is_gain(errors)):
                return lane
        return best
