"""Answer after answer, until all are there, time is up or the user has seen enough; what is there always counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from specdec_cli.bench.plan import Job
from specdec_cli.bench.running import Run
from specdec_cli.errors import SpecdecError

Stop = Literal["time limit", "interrupted", "error"]


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer that was timed."""

    job: Job
    run: Run


@dataclass(frozen=True, slots=True)
class Measurement:
    """The answers that there are, of so many `planned` ones; `stopped` says why some are missing, None if none is.

    `error` is what went wrong, if anything.
    """

    samples: tuple[Sample, ...]
    planned: int
    stopped: Stop | None = None
    error: SpecdecError | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Before an answer: which one of how many comes, and the seconds that are left, None while nobody knows."""

    job: Job
    number: int
    planned: int
    seconds_left: float | None


def measure(
    planned: Sequence[Job],
    answer: Callable[[Job], Run],
    tell: Callable[[Progress], object],
    *,
    time_limit: float,
    clock: Callable[[], float] = time.monotonic,
) -> Measurement:
    """Time every job of `planned`. After `time_limit` seconds, 0 for none, no answer is begun any more."""
    samples: list[Sample] = []
    started = clock()

    def ended(stopped: Stop | None = None, error: SpecdecError | None = None) -> Measurement:
        return Measurement(tuple(samples), len(planned), stopped, error)

    try:
        for number, job in enumerate(planned):
            spent = clock() - started
            if time_limit and spent >= time_limit:
                return ended("time limit")
            tell(Progress(job, number + 1, len(planned), _left(spent, number, len(planned), time_limit)))
            samples.append(Sample(job, answer(job)))
    except KeyboardInterrupt:
        return ended("interrupted")
    except SpecdecError as error:
        return ended("error", error)
    return ended()


def _left(spent: float, done: int, planned: int, time_limit: float) -> float | None:
    """By the pace so far, and not more than the limit allows."""
    if not done:
        return None
    left = spent / done * (planned - done)
    return min(left, time_limit - spent) if time_limit else left
