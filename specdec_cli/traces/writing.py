"""A trace file in the making: a line a round. Whenever the process dies, a tenth of a second is missing at most.

Rounds become records and lines by several: between two passes over a model every step of that is four times as slow.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final

from specdec_cli.core.step import Step
from specdec_cli.errors import UsageError
from specdec_cli.files import target_of
from specdec_cli.json_line import ESCAPES
from specdec_cli.traces.records import Record, Spelled, Spelling, to_end, to_header, to_round
from specdec_cli.traces.trace import End, Header

BEGINNING: Final = b'{"type":"answer","schema":'
"""What every trace begins with, and by which one is known."""


SECONDS_HELD: Final = 0.1
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)


class TraceWriter:
    """Writes answers to the file `path`, in the place of a trace that is there once the first of them begins.

    A disk that is full, or gone, ends the trace and not the answer: `notice` hears of it once.

    Raises:
        UsageError: it cannot be written, or is there and no trace.
    """

    def __init__(self, path: Path, notice: Callable[[str], object]) -> None:
        self._path = path
        self._notice = notice
        try:
            self._place = target_of(path)
            self._made = not self._place.exists()
            self._file: BinaryIO | None = self._place.open("xb" if self._made else "r+b", buffering=0)
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or "no file can have that name"
            raise UsageError(f"cannot write trace {path}: {reason}") from error
        if self._file.seek(0, os.SEEK_END) > 0 and not self._holds_trace(self._file):
            self._file.close()
            raise UsageError(f"{path} is there and is no trace", hint="it stays as it is; name another file")
        self._written = 0
        self._spelled: Spelled | None = None
        self._held: list[Record | Step] = []
        self._flushed = time.monotonic()

    @staticmethod
    def _holds_trace(file: BinaryIO) -> bool:
        file.seek(0)
        return file.read(len(BEGINNING)) == BEGINNING

    def begin(self, header: Header, spelling: Spelling) -> None:
        """Begin an answer, in tokens that are spelled so; an earlier one has ended, or never will."""
        if self._spelled is None:
            self._spelled = Spelled(spelling)
        self._held.append(to_header(header))
        self._flush()

    def write(self, step: Step) -> None:
        """Add a round. Of one session, as all answers of a file are."""
        if self._file is not None:
            self._held.append(step)
            if time.monotonic() - self._flushed > SECONDS_HELD:
                self._flush()

    def end(self, finish_reason: str, stats: Mapping[str, Any]) -> None:
        """End an answer, with its statistics as --json has them."""
        self._held.append(to_end(End(finish_reason, stats)))
        self._flush()

    def close(self) -> None:
        """No more answers will come. A file that got none and was not there before goes again."""
        self._flush()
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
            if self._made and not self._written:
                self._place.unlink(missing_ok=True)
        except OSError as error:
            self._notice(f"trace {self._path} may be cut: {error.strerror or error}")

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _flush(self) -> None:
        lines, self._held = b"".join(to_line(self._to_record(each)) for each in self._held), []
        if lines and self._file is not None:
            self._write(self._file, lines)
            self._flushed = time.monotonic()

    def _to_record(self, held: Record | Step) -> Record:
        if not isinstance(held, Step):
            return held
        assert self._spelled is not None
        return to_round(held, self._spelled)

    def _write(self, file: BinaryIO, lines: bytes) -> None:
        try:
            if not self._written:
                file.seek(0)
                file.truncate()
            rest = memoryview(lines)
            while rest:
                rest = rest[file.write(rest) :]
            self._written += len(lines)
        except OSError as error:
            self._give_up(error.strerror or str(error))

    def _give_up(self, reason: str) -> None:
        """Leave what is whole, and tell the user."""
        file, self._file = self._file, None
        assert file is not None
        with suppress(OSError):  # a reader forgives a last line that is cut
            file.truncate(self._written)
        with suppress(OSError):
            file.close()
        self._notice(f"trace {self._path} ends here: {reason}; the answer goes on")


def to_line(record: Record) -> bytes:
    """A record as a line of its own."""
    text = _ENCODER.encode(record)
    if not text.isascii() or "\x7f" in text:
        text = text.translate(ESCAPES)
    return text.encode("utf-8", "replace") + b"\n"
