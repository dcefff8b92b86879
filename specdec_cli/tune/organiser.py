"""Gives each race its time: how many settings run, over how many prompts, and how often."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from specdec_cli.tune.budget import Budget
from specdec_cli.tune.race import LEAST_CELLS, Race
from specdec_cli.tune.record import Record, Way
from specdec_cli.tune.setting import Setting

MOST_PASSES: Final = 8
"""Answers to each prompt in a race, if there is time for so many."""
LEAST_PASSES: Final = 2
"""Of the last race, whose figures are written down."""
FEW: Final = 2
"""Prompts of a race that has no time for all."""
FINAL: Final = "against plain decoding"
ESSENTIAL: Final = ("drafters", "draft length")
"""They may take more than their share for two settings at least, as long as enough is left for the last race."""
WEIGHTS: Final = {
    "threads": 3,
    "draft threads": 2,
    "drafters": 6,
    "draft length": 6,
    "rule": 2,
    "draft temperature": 2,
    "batch size": 2,
    FINAL: 8,
}
"""The stages in their order, and what each may have of the time that is left, as against those that follow."""

Tell = Callable[[str, float], object]
"""Who hears which stage runs, before each cell, and how many seconds are left."""


@dataclass(slots=True)
class Organiser:
    """Races within `budget`. `fixed` are stages that are left out; `records` are the races so far."""

    budget: Budget
    fixed: Collection[str]
    tell: Tell
    records: list[Record] = field(default_factory=list)

    def race(
        self,
        title: str,
        settings: Sequence[Setting],
        way: Way,
        words: Callable[[Setting], str],
        *,
        along: Setting | None = None,
    ) -> Setting:
        """Race `settings`, the simplest first; the winner, which is the first if none could run.

        `along` runs too, to compare with.

        Raises:
            SpecdecError: all of them fail.
            KeyboardInterrupt: Ctrl-C.
        """
        if title in self.fixed or len(settings) < 2:
            return settings[0]
        until = self.budget.until(self._share(title))
        way, count = self._plan(way, len(settings), until, along is not None)
        if not count and title in ESSENTIAL:
            until, way, count = self._at_least(way, until, along is not None)
        race = Race(settings[:count], self._timed(way), prompts=way.prompts, reference=along)
        record = Record(title, race, settings, words)
        self.records.append(record)
        if not count:
            return settings[0]
        self._run(title, race, way, until)
        record.winner = race.winner()
        return record.winner.contender

    def compare_with_plain(self, setting: Setting, way: Way) -> Race[Setting]:
        """The last race, for all the time that is left: plain decoding, and `setting`."""
        both = [setting.plain, setting]
        if self.budget.runs(way.kind, self.budget.end) < len(both) * LEAST_PASSES * way.prompts:
            way = way.narrowed(FEW)
        race = Race(both, self._timed(way), prompts=way.prompts, least=LEAST_PASSES)
        record = Record(FINAL, race, both, lambda each: "drafting" if each.draft_tokens else "plain")
        self.records.append(record)
        self._run(FINAL, race, way, self.budget.end)
        record.winner = race.winner() if race.is_decided else None
        return race

    def time(self, way: Way, setting: Setting) -> None:
        """Run once to see how long that takes, as the first guess of it."""
        started = self.budget.clock()
        way.run(setting, 0)
        self.budget.each[way.kind] = self.budget.clock() - started

    def _plan(self, way: Way, count: int, until: float, along: bool) -> tuple[Way, int]:
        """All prompts if all of `count` settings can answer them once, else few; then as many settings as can."""
        for each in (way, way.narrowed(FEW)):
            cells = max(each.prompts, LEAST_CELLS)
            fitting = int(min(self.budget.runs(way.kind, until) / cells - along, count))
            if fitting == count:
                return each, count
        return way.narrowed(FEW), fitting if fitting > 1 else 0

    def _at_least(self, way: Way, until: float, along: bool) -> tuple[float, Way, int]:
        """A race of two settings over few prompts, if that leaves enough for the last one."""
        few = way.narrowed(FEW)
        needed = (2 + along) * max(few.prompts, LEAST_CELLS)
        last = 2 * LEAST_PASSES * few.prompts
        if self.budget.runs(way.kind, self.budget.end) < needed + last:
            return until, few, 0
        return self.budget.clock() + needed * self.budget.each.get(way.kind, 0.0), few, 2

    def _run(self, title: str, race: Race[Setting], way: Way, until: float) -> None:
        while len(race.running) > 1 and race.cells < MOST_PASSES * way.prompts:
            lanes = len(race.running) + (race.reference is not None)
            if race.is_decided and self.budget.runs(way.kind, until) < lanes:
                return
            if self.budget.runs(way.kind, self.budget.end) < lanes:
                return
            self.tell(title, self.budget.left)
            race.run_cell()

    def _share(self, title: str) -> float:
        names = list(WEIGHTS)
        rest = [WEIGHTS[name] for name in names[names.index(title) :] if name not in self.fixed]
        return WEIGHTS[title] / sum(rest)

    def _timed(self, way: Way) -> Callable[[Setting, int], float | None]:
        def run(setting: Setting, cell: int) -> float | None:
            started = self.budget.clock()
            speed = way.run(setting, way.at(cell))
            self.budget.note(way.kind, self.budget.clock() - started)
            return speed

        return run
