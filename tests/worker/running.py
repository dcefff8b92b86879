"""`specdec worker` in a process, as a script has it, with the process behind it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PATIENCE: Final = 60.0
"""Seconds until a test that waits for the impossible fails."""


class RunningWorker:
    """A worker on one thread, with further `arguments`; on any free port if none is among them."""

    def __init__(self, *arguments: object) -> None:
        port = () if "--port" in arguments else ("--port", "0")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "specdec_cli", "worker", "--threads", "1", *port, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._said: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._process.stdout is not None
        self.endpoint = self._process.stdout.readline().strip()
        """Empty if it has ended before anybody could connect."""

    @property
    def pid(self) -> int:
        """The process that was started."""
        return self._process.pid

    @property
    def serving(self) -> int:
        """The process behind it that serves."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()[0])

    @property
    def said(self) -> str:
        """All of stderr until now, without the time of day."""
        with self._changed:
            return "".join(self._said)

    def wait_for(self, text: str, *, times: int = 1) -> None:
        """Wait until it has said `text`, so many `times`."""
        with self._changed:
            self._changed.wait_for(lambda: "".join(self._said).count(text) >= times, PATIENCE)
            assert "".join(self._said).count(text) >= times, self._said

    def end(self, number: int = signal.SIGTERM) -> int:
        """The exit code after the signal of this `number`."""
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """The exit code, once it has ended."""
        code = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._changed:
                self._said.append(re.sub(r"^\d\d:\d\d:\d\d ", "", line))
                self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.kill()
        self.wait()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something is so that nobody tells."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether there is such a process, and no ghost of one."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
