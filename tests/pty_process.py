"""A pseudo-terminal with an emulator behind it: what a person would see, scrollback included."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Self

import pyte

PATIENCE = 60.0
"""Seconds until a test that waits for the impossible fails."""


class PtyScreen:
    """A terminal of `columns` × `rows`; `slave` is the end that programs write to."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5)
        self.received = b""
        self._stream = pyte.ByteStream(self.screen)
        self._master, self.slave = pty.openpty()
        modes = termios.tcgetattr(self.slave)
        modes[3] |= termios.NOFLSH  # Ctrl-C would also discard what is written and not yet read here
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        self._changed = threading.Condition()
        self._ended = False
        self.resize(columns, rows)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                data = b""
            with self._changed:
                self.received += data
                self._stream.feed(data)
                self._ended = not data
                self._changed.notify_all()
            if not data:
                return

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size, as a user would."""
        with self._changed:
            fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            self.screen.resize(rows, columns)

    def press(self, keys: bytes) -> None:
        """Type `keys`; b"\\x03" is Ctrl-C."""
        os.write(self._master, keys)

    def wait_for(self, text: str, *, times: int = 1) -> None:
        """Wait until `text` was written to the terminal, so many `times`."""
        with self._changed:
            self._changed.wait_for(lambda: self.received.count(text.encode()) >= times or self._ended, PATIENCE)
            assert self.received.count(text.encode()) >= times, self.received[-1000:]

    def hang_up(self) -> None:
        """Close the program's end, and take in what was written before."""
        if self.slave >= 0:
            os.close(self.slave)
            self.slave = -1
            self._reader.join(PATIENCE)
            assert not self._reader.is_alive()
            os.close(self._master)

    def lines(self) -> list[str]:
        """Every line, scrollback first, without trailing blanks and blank lines at the end."""
        past = [self._text(row) for row in self.screen.history.top]
        now = [self._text(self.screen.buffer[y]) for y in range(self.screen.lines)]
        return "\n".join(line.rstrip() for line in past + now).rstrip("\n").split("\n")

    def _text(self, row: Any) -> str:
        return "".join(row[x].data for x in range(self.screen.columns))

    @property
    def shows_cursor(self) -> bool:
        """Whether the cursor is visible."""
        return not self.screen.cursor.hidden

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.hang_up()


class PtyProcess(PtyScreen):
    """`specdec` with `arguments` in a terminal of its own; stdin or stdout may be something else."""

    def __init__(
        self,
        arguments: Sequence[object],
        *,
        columns: int = 80,
        rows: int = 24,
        environment: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | IO[bytes] | None = None,
    ) -> None:
        super().__init__(columns, rows)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "specdec_cli", *map(str, arguments)],
            stdin=self.slave if stdin is None else stdin,
            stdout=self.slave if stdout is None else stdout,
            stderr=self.slave,
            env={**_without_size(), "TERM": "xterm", **(environment or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(2, termios.TIOCSCTTY, 0),
        )

    def wait(self) -> int:
        """The exit code, once it has ended and all of its output is on the screen."""
        code = self._process.wait(PATIENCE)
        self.hang_up()
        return code

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)
        self.hang_up()


def wrapped(text: str, columns: int) -> list[str]:
    """The rows that a terminal shows `text` in, of characters that are one cell wide, without trailing blanks."""
    rows = [line[at : at + columns] for line in text.split("\n") for at in range(0, max(len(line), 1), columns)]
    return "\n".join(row.rstrip() for row in rows).rstrip("\n").split("\n")


def _without_size() -> dict[str, str]:
    """The environment but for a window's size, which workers of the tests are given and which would win."""
    return {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
