"""The process that serves, as the one that looks after it has it: its output as events, and its end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Final

from specdec_cli.worker.messages import Stopped, to_message
from specdec_cli.worker.plan import Plan

KEPT_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Printed:
    """A line that the process printed: ggml's, or a message in one."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The process ended by itself for `reason`, in words."""

    reason: str


class Child:
    """A process that serves by `plan`; what it prints, and how it ends, go into `events`.

    `folder` is that of the cache and `lock` a descriptor that it inherits and keeps as long as it lives.
    """

    def __init__(self, plan: Plan, events: SimpleQueue[Any], folder: Path | None, lock: int | None) -> None:
        self._events = events
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._stopped: Stopped | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "specdec_cli.worker.serving", plan.to_text()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            pass_fds=() if lock is None else (lock,),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._life_line = self._process.stdin
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def end(self) -> None:
        """End the process at once, if it has not ended yet, and let go of it."""
        self._process.kill()
        self._process.wait()
        self._life_line.close()

    def _read(self, output: IO[bytes]) -> None:
        for line in output:
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            message = to_message(text)
            if isinstance(message, Stopped):
                self._stopped = message
            elif message is None and text.strip():
                self._last.append(text)
            self._events.put(Printed(text))
        output.close()
        self._events.put(Ended(self._reason(self._process.wait())))

    def _reason(self, code: int) -> str:
        if self._stopped is not None:
            return self._stopped.message
        if code < 0:
            return _crash(-code)
        return self._last[-1] if self._last else f"left with code {code}"


def _crash(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if name == "SIGKILL":
        return "killed (SIGKILL: out of memory?)"
    return f"crashed ({name})"
