"""What `benchmarks.rpc` measured: as records, as lines to read, and as a file that its picture is drawn from again."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

SHOWN: Final = (2, 3, 4, 6, 8, 12, 16)
"""Lengths of passes whose cost is printed."""
HEADER: Final = (
    f"{'each way':>9}  {'T':<2}{'text':<7}{'plain':>8}{'auto':>8} tok/s   {'speed-up':<22}"
    f"{'drafted':>8}{'tokens':>8} a round{'α':>7}{'waits':>7} a pass"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One text at one temperature: tokens a second of each turn, and what the rounds of auto were like.

    `exchanges` is how many answers of workers a target pass of auto waits for, one after another.
    """

    temperature: str
    text: str
    plain: list[float]
    auto: list[float]
    drafted: float
    tokens: float
    alpha: float | None
    exchanges: float

    @property
    def speed_ups(self) -> list[float]:
        """Of each turn, lowest first."""
        return sorted(fast / slow for fast, slow in zip(self.auto, self.plain, strict=True))

    @property
    def speed_up(self) -> float:
        return statistics.median(self.speed_ups)


@dataclass(frozen=True, slots=True)
class Network:
    """All cells behind one delay each way, and the seconds of passes over 1, 2, ... tokens that auto decided by."""

    milliseconds: float
    target: list[float]
    draft: list[float]
    cells: list[Cell]

    def v(self, tokens: int) -> float:
        """What a target pass over so many tokens costs, in plain steps."""
        return self.target[tokens - 1] / self.target[0]

    def cell(self, temperature: str, text: str) -> Cell:
        return next(each for each in self.cells if (each.temperature, each.text) == (temperature, text))


@dataclass(frozen=True, slots=True)
class Report:
    """A run: lines that say what it was made with, and a `Network` for each delay, shortest first."""

    facts: list[str]
    networks: list[Network]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", "utf-8")


def read_report(path: Path) -> Report:
    """What `Report.write` wrote."""
    content: Any = json.loads(path.read_text("utf-8"))
    networks = [Network(**{**each, "cells": [Cell(**cell) for cell in each["cells"]]}) for each in content["networks"]]
    return Report(content["facts"], networks)


def to_row(network: Network, cell: Cell) -> str:
    plain, auto = (statistics.median(each) for each in (cell.plain, cell.auto))
    speed_up = f"{cell.speed_up:5.2f} × ({cell.speed_ups[0]:.2f} to {cell.speed_ups[-1]:.2f})"
    alpha = "-" if cell.alpha is None else f"{cell.alpha:.2f}"
    return (
        f"{network.milliseconds:6g} ms  {cell.temperature:<2}{cell.text:<7}{plain:8.2f}{auto:8.2f}         "
        f"{speed_up:<22}{cell.drafted:8.2f}{cell.tokens:8.2f}        {alpha:>7}{cell.exchanges:7.2f}"
    )


def to_costs(network: Network) -> str:
    """The cost curve, as specdec measured it."""
    curve = "".join(f"  v({n}) {network.v(n):.2f}" for n in SHOWN if n <= len(network.target))
    step, draft = 1000 * network.target[0], network.draft[0] / network.target[0]
    return f"{network.milliseconds:6g} ms  a plain step takes {step:.1f} ms;{curve};  c {draft:.2f}"


def to_means(report: Report) -> Iterator[str]:
    """The geometric mean of the speed-ups over the texts, for each delay and temperature."""
    for network in report.networks:
        means = [
            f"temperature {temperature}: {statistics.geometric_mean(each.speed_up for each in cells):.2f} ×"
            for temperature, cells in groupby(network.cells, lambda each: each.temperature)
        ]
        both = statistics.geometric_mean(each.speed_up for each in network.cells)
        yield f"{network.milliseconds:6g} ms  {',  '.join(means)},  all: {both:.2f} ×"
