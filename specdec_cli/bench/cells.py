"""Samples to cells: what was measured of one kind of prompt, at one temperature, with one draft length."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specdec_cli.bench.measuring import Sample
from specdec_cli.bench.prompts import ALL
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.limits import DraftTokens


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of what the turns gave, and the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of one value at least."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Cell:
    """All answers to prompts of `kind`, or of all kinds, at one `temperature` with one draft length.

    `speed_up` is over the plain answers of the same turns, None if there are none, and `speed` in tokens a second.
    """

    kind: str
    temperature: float
    draft_tokens: DraftTokens
    speed: Spread
    speed_up: Spread | None
    samples: tuple[Sample, ...]

    @property
    def counters(self) -> Counters:
        """What was counted in all of them."""
        total = Counters()
        for each in self.samples:
            total.include(each.run.counters)
        return total

    @property
    def timing(self) -> Timing:
        """Seconds of all of them."""
        total = Timing()
        for each in self.samples:
            total.include(each.run.timing)
        return total

    @property
    def sampling(self) -> float:
        """Seconds of a round that are neither model's."""
        return self.timing.sample / max(self.counters.rounds, 1)


def to_cells(samples: Sequence[Sample]) -> list[Cell]:
    """A cell for everything that was measured, kind by kind, plain decoding first; all kinds together come last.

    Answers without a token tell nothing and are left out.
    """
    told = [each for each in samples if each.run.tokens]
    kinds = dict.fromkeys(each.job.prompt.kind for each in told)
    groups = [(kind, [each for each in told if each.job.prompt.kind == kind]) for kind in kinds]
    if len(groups) > 1:
        groups.append((ALL, _compared(told)))
    return [cell for kind, group in groups for cell in _of_kind(kind, group)]


def _compared(samples: Sequence[Sample]) -> list[Sample]:
    """Those of prompts that were asked with every draft length, if there are any: an end may come in the middle."""
    lengths = {each.job.draft_tokens for each in samples}
    asked: dict[tuple[int, str, float], set[DraftTokens]] = {}
    for each in samples:
        asked.setdefault(_asked(each), set()).add(each.job.draft_tokens)
    return [each for each in samples if asked[_asked(each)] == lengths] or [*samples]


def _asked(sample: Sample) -> tuple[int, str, float]:
    return sample.job.turn, sample.job.prompt.place, sample.job.temperature


def _of_kind(kind: str, samples: Sequence[Sample]) -> Iterator[Cell]:
    for temperature in sorted({each.job.temperature for each in samples}):
        at = [each for each in samples if each.job.temperature == temperature]
        lengths = sorted({each.job.draft_tokens for each in at}, key=_order)
        for length in lengths:
            yield _to_cell(kind, temperature, length, at)


def _order(length: DraftTokens) -> float:
    return float("inf") if length == "auto" else length


def _to_cell(kind: str, temperature: float, length: DraftTokens, at: Sequence[Sample]) -> Cell:
    ours, plain = (
        {(each.job.turn, each.job.prompt.place): each for each in at if each.job.draft_tokens == wanted}
        for wanted in (length, 0)
    )
    turns = _whole_turns([*ours])
    speeds, ratios = [], []
    for turn in turns:
        keys = [key for key in ours if key[0] == turn]
        speeds.append(_speed([ours[key] for key in keys]))
        if all(key in plain for key in keys):
            ratios.append(speeds[-1] / _speed([plain[key] for key in keys]))
    samples = tuple(each for key, each in ours.items() if key[0] in turns)
    return Cell(kind, temperature, length, Spread.of(speeds), Spread.of(ratios) if ratios else None, samples)


def _whole_turns(keys: Sequence[tuple[int, str]]) -> list[int]:
    """The turns in which as many prompts were asked as in the fullest one: others would be of another mixture."""
    asked: dict[int, int] = {}
    for turn, _ in keys:
        asked[turn] = asked.get(turn, 0) + 1
    return [turn for turn, count in asked.items() if count == max(asked.values())]


def _speed(samples: Sequence[Sample]) -> float:
    """Tokens a second, every prompt counting alike however long its answer is."""
    return len(samples) / sum(1 / each.run.speed for each in samples)
