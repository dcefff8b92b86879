"""A worker as its user has it: a process that serves, which is started again when it dies, and what there is to say.

That process is one of its own because what a broken client sends can end it, and because it holds all the memory.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, NoReturn

from specdec_cli.errors import EXIT_OK, EXIT_USAGE, ModelError, SpecdecError, UsageError
from specdec_cli.terminal import ONE_LINE, Terminal
from specdec_cli.worker import words
from specdec_cli.worker.child import Child, Ended, Printed
from specdec_cli.worker.messages import Ready, Refused, to_message
from specdec_cli.worker.plan import Plan
from specdec_cli.worker.tensor_cache import Checked, TensorCache
from specdec_cli.worker.visits import Visit

MOST_FAILURES: Final = 3
SECONDS_OF_FAILURES: Final = 10.0
"""A process that dies so often in so short a time without having had a client would go on with that for ever."""
NAP: Final = 1.0
"""Seconds until a signal is noticed at the latest: one that comes just before a wait begins does not wake Python."""
VERSION: Final = "Starting RPC server v"
CAME, LEFT, NO_SOCKET = "Accepted client connection", "Client connection closed", "Failed to create server socket"
"""What ggml prints."""

Event = Printed | Ended | Checked


def supervise(plan: Plan, cache: TensorCache | None, terminal: Terminal) -> int:
    """Serve until Ctrl-C or SIGTERM; the exit code then.

    Raises:
        SpecdecError: nothing can be served, or not any more.
    """
    signal.signal(signal.SIGTERM, _end_once)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end_once)
    supervisor = Supervisor(plan, cache, terminal)
    try:
        supervisor.run()
    except KeyboardInterrupt:  # how a worker is ended
        return EXIT_OK
    finally:
        supervisor.end()


def _end_once(*_: object) -> NoReturn:
    """Raise KeyboardInterrupt, and let no second signal disturb the end: a launcher may pass on that of a terminal."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _stay_calm)
    raise KeyboardInterrupt


def _stay_calm(*_: object) -> None:
    """Of a signal that is ignored while it is on its way, Python would complain."""


class Supervisor:
    """Looks after one process after another that serves by `plan`, with the tensors of `cache`."""

    def __init__(self, plan: Plan, cache: TensorCache | None, terminal: Terminal) -> None:
        self._plan, self._cache, self._terminal = plan, cache, terminal
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._to_check: SimpleQueue[None] = SimpleQueue()
        self._visit = Visit()
        self._version: str | None = None
        self._refused: Refused | None = None
        self._served = self._had_client = False
        self._failures: list[float] = []
        self._child: Child | None = None

    def run(self) -> NoReturn:
        """Serve for ever.

        Raises:
            SpecdecError: nothing can be served, or not any more.
            KeyboardInterrupt: Ctrl-C or SIGTERM.
        """
        if self._cache is not None:
            threading.Thread(target=self._check_new, args=(self._cache,), daemon=True).start()
        self._start()
        while True:
            due = self._visit.due(time.monotonic())
            try:
                event = self._events.get(timeout=NAP if due is None else min(due, NAP))
            except Empty:
                if self._visit.due(time.monotonic()) == 0:
                    self._visit.tell()
                    self._say(words.CAME)
                continue
            if isinstance(event, Printed):
                self._hear(event.text)
            elif isinstance(event, Ended):
                self._recover(event.reason)
            elif event != Checked():
                self._say(words.checked(event))

    def end(self) -> None:
        """End the process that serves."""
        if self._child is not None:
            self._child.end()

    def _start(self) -> None:
        self._had_client = False
        folder = lock = None
        if self._cache is not None:
            folder, lock = self._cache.folder, self._cache.lock
            if (checked := words.with_progress(self._cache.check, self._terminal)) != Checked():
                self._say(words.checked(checked))
        self._child = Child(self._plan, self._events, folder, lock)

    def _hear(self, line: str) -> None:
        """Take in what the process printed."""
        message = to_message(line)
        if isinstance(message, Ready):
            self._announce(message)
        elif isinstance(message, Refused):
            self._refused = message
        elif line == CAME:
            self._visit.begin(time.monotonic())
            self._had_client = True
        elif line == LEFT:
            self._leave()
        elif line.startswith(VERSION):
            self._version = line.removeprefix(VERSION)
        elif message is None and self._plan.verbose:
            self._terminal.log(f"{line}\n")

    def _announce(self, ready: Ready) -> None:
        if self._served:
            self._say(words.AGAIN)
            return
        self._served = True
        folder = None if self._cache is None else self._cache.folder
        for line in words.serving(self._plan, ready, self._version, folder):
            self._say(line)
        if not self._terminal.shows_text:
            self._terminal.write_text(f"{self._plan.address}\n")

    def _leave(self) -> None:
        stayed = self._visit.end(time.monotonic())
        if stayed is not None:
            self._say(words.left(stayed))
        if self._cache is not None:
            self._to_check.put(None)

    def _recover(self, reason: str) -> None:
        """Start anew after the process died by itself, unless that would not help."""
        now = time.monotonic()
        self._visit.end(now)
        if self._refused is not None:
            raise _to_error(self._refused)
        if reason == NO_SOCKET:
            raise UsageError(f"{self._plan.address} is in use", hint="--port N is another one, --port 0 any free one")
        if not self._served:
            raise ModelError(f"the devices cannot be served: {reason}", hint="--verbose shows llama.cpp's log")
        recent = [failure for failure in self._failures if now - failure < SECONDS_OF_FAILURES]
        self._failures = [] if self._had_client else [*recent, now]
        if len(self._failures) >= MOST_FAILURES:
            raise ModelError(f"the serving process dies again and again: {reason}")
        self._say(words.died(reason))
        self.end()
        self._start()

    def _check_new(self, cache: TensorCache) -> None:
        """Read what clients left in the cache, beside all else; what is never found right is never served."""
        while True:
            self._to_check.get()
            with suppress(SpecdecError):
                self._events.put(cache.check(only_new=True))

    def _say(self, text: str) -> None:
        if not self._terminal.quiet:
            self._terminal.show_styled([(time.strftime("%H:%M:%S "), "dim"), (text.translate(ONE_LINE), "")])


def _to_error(refused: Refused) -> SpecdecError:
    kind = UsageError if refused.exit_code == EXIT_USAGE else ModelError
    return kind(refused.message, hint=refused.hint)
