"""The order of answers, and how they end: by themselves, by the clock, by Ctrl-C or by an error."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdec_cli.bench.measuring import Measurement, Progress, Sample, measure
from specdec_cli.bench.plan import Job, jobs
from specdec_cli.bench.running import Run
from specdec_cli.errors import ModelError
from tests.bench.answers import plain_rounds, plan, run_of

RUN = run_of(plain_rounds(3), 1.0)


class Clock:
    """Each answer takes 10 seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def answer(self, job: Job) -> Run:
        self.now += 10
        return RUN


def all_jobs() -> list[Job]:
    return list(jobs(plan("code", "prose", lengths=(1, 2, "auto"))))


def measured(clock: Clock, *, time_limit: float = 0, told: list[Progress] | None = None) -> Measurement:
    told = [] if told is None else told
    return measure(all_jobs(), clock.answer, told.append, time_limit=time_limit, clock=clock)


def test_plain_decoding_and_what_is_compared_with_it_take_turns() -> None:
    twice = replace(plan("code", "prose", lengths=(1, "auto"), repeat=2), temperatures=(0.0, 1.0))
    order = [(job.turn, job.prompt.kind, job.temperature, job.draft_tokens) for job in jobs(twice)]
    assert order[:6] == [
        (0, "code", 0, 0),
        (0, "code", 0, 1),
        (0, "code", 0, "auto"),
        (0, "code", 1, 0),
        (0, "code", 1, 1),
        (0, "code", 1, "auto"),
    ]
    assert [length for turn, kind, temperature, length in order if (turn, kind, temperature) == (1, "code", 0)] == [
        0,
        "auto",
        1,
    ], "the other way round, so that what drifts cancels"
    assert len(order) == len(set(order)) == 2 * 2 * 2 * 3


def test_without_a_limit_every_answer_is_timed() -> None:
    found = measured(Clock())
    assert found == Measurement(tuple(Sample(job, RUN) for job in all_jobs()), 8)


def test_no_answer_begins_after_the_time_limit() -> None:
    found = measured(Clock(), time_limit=25)
    assert (len(found.samples), found.planned, found.stopped) == (3, 8, "time limit")


def test_the_time_left_follows_the_pace_and_never_exceeds_the_limit() -> None:
    told: list[Progress] = []
    measured(Clock(), told=told)
    assert [each.seconds_left for each in told[:3]] == [None, 70, 60]
    assert [each.number for each in told] == list(range(1, 9))
    told.clear()
    measured(Clock(), time_limit=30, told=told)
    assert [each.seconds_left for each in told] == [None, 20, 10]


@pytest.mark.parametrize(
    ("error", "stopped"), [(KeyboardInterrupt(), "interrupted"), (ModelError("it broke"), "error")]
)
def test_what_was_measured_before_the_end_still_counts(error: BaseException, stopped: str) -> None:
    clock = Clock()

    def answer(job: Job) -> Run:
        if clock.now >= 20:
            raise error
        return clock.answer(job)

    found = measure(all_jobs(), answer, lambda _: None, time_limit=0, clock=clock)
    assert (len(found.samples), found.stopped) == (2, stopped)
    assert found.error is (error if stopped == "error" else None)
