"""Some of a trace: one of its answers, or one round of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from specdec_cli.errors import UsageError
from specdec_cli.traces.trace import Header, TracedRound, TraceRecord


def choose(records: Iterable[TraceRecord], path: Path, answer: int | None, index: int | None) -> Iterator[TraceRecord]:
    """Those of `records` that belong to `answer`, counted from 1, and to round `index`, from 0; all where it is None.

    Headers stay, and so do ends unless a round is asked for. What comes behind the answer is not read.

    Raises:
        UsageError: `path`, where they come from, has no such answer or round.
    """
    count, found = 0, False
    for record in records:
        count += isinstance(record, Header)
        if answer is not None and count > answer:
            break
        if answer not in (None, count):
            continue
        wanted = index is None or (isinstance(record, TracedRound) and record.index == index)
        found = found or wanted
        if wanted or isinstance(record, Header):
            yield record
    if answer is not None and count < answer:
        raise UsageError(f"trace {path} has no answer {answer}", hint=f"it has {count}")
    if not found:
        raise UsageError(f"trace {path} has no round {index}" + ("" if answer is None else f" in answer {answer}"))
