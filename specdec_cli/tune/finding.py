"""What a tuning found: each stage with all that it tried, and what it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specdec_cli.tune.setting import Setting

Verdict = Literal["speculate", "do not speculate", "undecided"]


@dataclass(frozen=True, slots=True)
class Row:
    """One setting in a stage: tokens a second (None if it never ran), times plain decoding, and what became of it."""

    words: str
    speed: float | None
    times_plain: float | None
    runs: int
    fate: str


@dataclass(frozen=True, slots=True)
class Stage:
    """What was raced for one choice, `title`."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times plain decoding the found setting is, with two standard errors to both sides."""

    plain: float
    speculative: float
    speed_up: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class Finding:
    """The `setting` that was found, and the verdict with its reason and what would change it.

    Too little time, or too busy a machine, leave it undecided; `ratio` is None if they left nothing to measure by.
    `interrupted` is after Ctrl-C: the best so far.
    """

    setting: Setting
    verdict: Verdict
    ratio: Ratio | None
    reason: str = ""
    advice: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    interrupted: bool = False
