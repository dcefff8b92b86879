"""A race that was run, as the table of a tuning shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from specdec_cli.tune.finding import Row, Stage
from specdec_cli.tune.race import Lane, Race, compare
from specdec_cli.tune.setting import Setting

NO_TIME: Final = "not tried, too little time"


@dataclass(frozen=True, slots=True)
class Way:
    """How a stage runs a setting: over which prompts, by their places among `total`, and of which kind its runs are.

    `run` takes a cell of the course: a prompt's place, and `total` more for each further answer to it.
    """

    run: Callable[[Setting, int], float | None]
    places: tuple[int, ...]
    total: int
    kind: str = "answers"

    @property
    def prompts(self) -> int:
        """How many prompts it asks."""
        return len(self.places)

    def narrowed(self, prompts: int) -> Way:
        """The same over the first so many prompts, if it has more."""
        return replace(self, places=self.places[:prompts])

    def at(self, cell: int) -> int:
        """The cell of the course that is cell number `cell` of a race."""
        turn, index = divmod(cell, self.prompts)
        return turn * self.total + self.places[index]


@dataclass(slots=True)
class Record:
    """A race for one choice, with all `settings` that would have run if there had been time; None won yet."""

    title: str
    race: Race[Setting]
    settings: Sequence[Setting]
    words: Callable[[Setting], str]
    winner: Lane[Setting] | None = None

    def to_stage(self) -> Stage:
        """The race in words, plain decoding last if it ran along."""
        rows = [self._to_row(lane) for lane in self.race.lanes]
        waiting = self.settings[len(rows) :]
        rows += [Row(self.words(each), None, None, 0, NO_TIME) for each in waiting]
        plain = self.race.reference
        if plain is not None and plain.speeds:
            rows.append(Row("plain", plain.speed, 1.0, len(plain.speeds), plain.out or "to compare with"))
        return Stage(self.title, tuple(rows))

    def _to_row(self, lane: Lane[Setting]) -> Row:
        plain = self.race.reference
        margin = None if plain is None else compare(lane.speeds, plain.speeds, self.race.prompts)
        times = None if margin is None else math.exp(margin.mean)
        return Row(self.words(lane.contender), lane.speed, times, len(lane.speeds), self._fate(lane))

    def _fate(self, lane: Lane[Setting]) -> str:
        if lane.out:
            return lane.out
        alone = len(self.race.running) == 1
        if self.winner is None or not (self.race.is_decided or alone):
            return "undecided, too little time" if lane.speeds else NO_TIME
        if lane is self.winner:
            return "chosen"
        return (
            "as fast as the chosen one"
            if self.settings.index(lane.contender) > self.settings.index(self.winner.contender)
            else "slower"
        )
