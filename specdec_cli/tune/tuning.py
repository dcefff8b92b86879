"""The races, one choice after the other: threads, who drafts, how far, rule, temperature, batch, and against plain."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from specdec_cli.tune.advice import explain
from specdec_cli.tune.finding import Finding, Ratio, Stage
from specdec_cli.tune.organiser import Organiser
from specdec_cli.tune.race import Race, compare
from specdec_cli.tune.record import Way
from specdec_cli.tune.setting import (
    BATCHES,
    TEMPERATURES,
    Setting,
    chains,
    draft_thread_counts,
    lengths,
    thread_counts,
    to_name,
)
from specdec_cli.tune.track import Course, main_source

WORTH_KNOWING: Final = 1.05
"""Times plain decoding: while drafting may still reach that, plain decoding is not said to be better."""
PROBE: Final = 3
"""The draft length by which threads are compared: passes over a few tokens are what drafting is made of."""


@dataclass(slots=True)
class Tuning:
    """One tuning, on `course` and in the time that `organiser` has; `setting` is the best so far."""

    course: Course
    organiser: Organiser
    setting: Setting
    usable_cpus: int

    def find(self) -> Finding:
        """Race all choices, one after the other; after Ctrl-C what is known so far.

        Raises:
            SpecdecError: the pair cannot answer even as it is.
        """
        try:
            self._warm_up()
            self._race_threads()
            self._race_drafts()
            self._race_sampling()
            return self._compare_with_plain()
        except KeyboardInterrupt:
            return Finding(self.setting, "undecided", None, stages=self._stages(), interrupted=True)

    def _warm_up(self) -> None:
        """Read the files, wake the machine, measure what passes cost and then how long a run takes."""
        self.organiser.tell("warming up", self.organiser.budget.left)
        for setting in (self.setting, self.setting.plain, self.setting):
            self.organiser.time(self._answers(), setting)

    def _race_threads(self) -> None:
        def by_turns(setting: Setting, cell: int) -> float | None:
            drafted = replace(setting, draft_tokens=PROBE)
            return self.course.speed(drafted if cell % 2 else setting.plain, cell // 2)

        def probe(setting: Setting, cell: int) -> float | None:
            return self.course.speed(replace(setting, draft_tokens=PROBE), cell)

        now, race = self.setting, self.organiser.race
        own = "draft threads" in self.organiser.fixed
        both = [
            replace(now, threads=count, draft_threads=now.draft_threads if own else count)
            for count in thread_counts(self.usable_cpus)
        ] or [now]
        self.setting = race("threads", both, Way(by_turns, (0, 1), 2), lambda each: str(each.threads))
        if "threads" in self.organiser.fixed:
            self.setting = now
        counts = draft_thread_counts(self.setting.threads) if now.has_model else [self.setting.draft_threads]
        alone = [replace(self.setting, draft_threads=count) for count in counts]
        way = Way(probe, (0, 1), self.course.prompts)
        chosen = race("draft threads", alone, way, lambda each: str(each.draft_threads))
        self.setting = self.setting if own else chosen
        if self.setting != now:
            self._warm_up()  # passes cost something else now

    def _race_drafts(self) -> None:
        race, answers, plain = self.organiser.race, self._answers(), self.setting.plain
        tried = [replace(self.setting, chain=each) for each in chains(self.setting.chain)]
        self.setting = race("drafters", tried, answers, lambda each: to_name(each.chain), along=plain)
        counters = self.course.counters(self.setting.chain)
        source = main_source(counters, self.setting)
        found = lengths(counters.expected_alpha, self.course.costs(self.setting), source)
        settings = [replace(self.setting, draft_tokens=each) for each in found]
        self.setting = race("draft length", settings, answers, lambda each: str(each.draft_tokens), along=plain)

    def _race_sampling(self) -> None:
        race = self.organiser.race
        sampled = Way(self.course.speed, self.course.sampled, self.course.prompts)
        rules = [replace(self.setting, rule=each) for each in (self.setting.rule, "token")]
        self.setting = race("rule", rules, sampled, lambda each: each.rule)
        tried = TEMPERATURES if self.setting.draws else TEMPERATURES[:1]
        drafts = [replace(self.setting, draft_temperature=each) for each in tried]
        self.setting = race("draft temperature", drafts, sampled, lambda each: each.draft_temperature)
        sizes = [replace(self.setting, batch_size=each) for each in (self.setting.batch_size, *BATCHES)]
        reading = Way(self.course.prompt_speed, (0,), 1, kind="prompts")
        self.setting = race("batch size", list(dict.fromkeys(sizes)), reading, lambda each: str(each.batch_size))

    def _answers(self) -> Way:
        return Way(self.course.speed, tuple(range(self.course.prompts)), self.course.prompts)

    def _compare_with_plain(self) -> Finding:
        race = self.organiser.compare_with_plain(self.setting, self._answers())
        ratio = _to_ratio(race)
        if ratio is None:
            return Finding(self.setting, "undecided", None, stages=self._stages())
        if race.winner().contender.draft_tokens:
            return Finding(self.setting, "speculate", ratio, stages=self._stages())
        if ratio.highest >= WORTH_KNOWING:
            return Finding(self.setting, "undecided", ratio, stages=self._stages())
        counters = self.course.counters(self.setting.chain)
        why, ways_out = explain(ratio, counters, self.course.costs(self.setting), main_source(counters, self.setting))
        return Finding(self.setting.plain, "do not speculate", ratio, why, ways_out, self._stages())

    def _stages(self) -> tuple[Stage, ...]:
        return tuple(record.to_stage() for record in self.organiser.records)


def _to_ratio(race: Race[Setting]) -> Ratio | None:
    """What the last race measured; None if it was not run to an end."""
    plain, drafting = race.lanes
    margin = compare(drafting.speeds, plain.speeds, race.prompts)
    if not race.is_decided or margin is None or drafting.speed is None or plain.speed is None:
        return None
    lowest, speed_up, highest = (math.exp(margin.mean + sign * margin.spread) for sign in (-1, 0, 1))
    return Ratio(plain.speed, drafting.speed, speed_up, lowest, highest)
