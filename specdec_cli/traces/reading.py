"""A trace file, read and checked line by line: `read_trace` for all of it, `read_records` for one record at a time."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

from specdec_cli.errors import UsageError
from specdec_cli.traces.fields import DamageError
from specdec_cli.traces.parsing import SchemaError, to_record
from specdec_cli.traces.trace import SCHEMA, End, Header, Trace, TracedAnswer, TracedRound, TraceRecord

LONGEST_LINE: Final = 2**28
"""Bytes: a thousand times a long round, and no more than a machine can hold."""
HINT: Final = "a trace is what specdec generate --trace FILE writes"


def read_trace(path: Path, notice: Callable[[str], object]) -> Trace:
    """All answers in `path`; `notice` hears of a last line that was cut.

    Raises:
        UsageError: it cannot be read, is no trace, of another schema, or damaged; the message has the line.
    """
    return Trace(tuple(to_answers(read_records(path, notice))))


def to_answers(records: Iterator[TraceRecord]) -> Iterator[TracedAnswer]:
    """Records put together to answers, in their order."""
    header: Header | None = None
    rounds: list[TracedRound] = []
    end: End | None = None
    for record in records:
        if isinstance(record, TracedRound):
            rounds.append(record)
        elif isinstance(record, End):
            end = record
        else:
            if header is not None:
                yield TracedAnswer(header, tuple(rounds), end)
            header, rounds, end = record, [], None
    if header is not None:
        yield TracedAnswer(header, tuple(rounds), end)


def read_records(path: Path, notice: Callable[[str], object]) -> Iterator[TraceRecord]:
    """The records in `path`, in order: a header, rounds counted from 0, an end if there is one, the next header.

    Raises:
        UsageError: as `read_trace`; records before the damage were given.
    """
    try:
        with _open(path) as file:
            yield from _records(file, path, notice)
    except OSError as error:
        raise UsageError(f"cannot read trace {path}: {error.strerror or error}") from error


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except ValueError:
        raise OSError(errno.EINVAL, "its name holds a zero byte") from None


def _records(file: BinaryIO, path: Path, notice: Callable[[str], object]) -> Iterator[TraceRecord]:
    order, number = _Order(), 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        whole = line.endswith(b"\n")
        try:
            record = to_record(_parse(line))
            order.check(record)
        except SchemaError as other:
            raise UsageError(
                f"trace {path} has schema {other.schema}, and this specdec reads {SCHEMA}",
                hint="read it with the specdec that wrote it",
            ) from None
        except DamageError as damage:
            if whole or number == 1 or len(line) == LONGEST_LINE:
                _refuse(path, number, str(damage))
            notice(f"the last line of {path} is cut and left out: whoever wrote it did not end")
            return
        yield record
    if number == 0:
        raise UsageError(f"trace {path} is empty", hint=HINT)


def _refuse(path: Path, number: int, damage: str) -> NoReturn:
    if number == 1:
        raise UsageError(f"{path} is no trace: line 1: {damage}", hint=HINT)
    raise UsageError(
        f"trace {path} is damaged in line {number}: {damage}",
        hint=f"the lines before it are whole: head -n {number - 1}",
    )


class _Order:
    """Which record may follow which."""

    def __init__(self) -> None:
        self._next: int | None = None
        """The round that is next; None outside an answer."""

    def check(self, record: TraceRecord) -> None:
        """Take note of the next record; raises DamageError if it has no place here."""
        if isinstance(record, Header):
            self._next = 0
        elif self._next is None:
            raise DamageError("it belongs to no answer")
        elif isinstance(record, End):
            self._next = None
        elif record.index != self._next:
            raise DamageError(f"it is round {record.index}, where {self._next} is next")
        else:
            self._next += 1


def _parse(line: bytes) -> Any:
    if len(line) == LONGEST_LINE:
        raise DamageError(f"it is longer than {LONGEST_LINE:,} bytes")
    try:
        return json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DamageError("it is no JSON") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
