"""Ctrl-C that ends a pass over the model at once and never leaves a cache half-told.

Inside the `with`, the first Ctrl-C only raises a flag: llama.cpp sees it between two operations of a
running pass, and `check` turns it into KeyboardInterrupt where the caches are consistent. A second one
raises KeyboardInterrupt wherever the program is, for it to end, whatever the caches hold. A program that
was started to ignore Ctrl-C (nohup, a script's background job) goes on ignoring it.

The flag is read by C code alone. A Python callback would cost a microsecond for each of about a thousand
operations of a pass; `strlen` of a buffer that holds "" or "\\x01" is a ready-made C function of the right
type that answers 0 or 1. While the main thread is inside llama.cpp no Python handler can run there, so a
thread waits for the signal on its wake-up descriptor. A process has one handler: several interrupts may be
entered, and left in any order, and Ctrl-C raises the flags of all of them.

Nothing looks at the flag while llama.cpp waits for a worker. A second Ctrl-C then breaks the connections to all of
them, which ends the program with its last words: one that hangs would otherwise be waited for without end.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Final

from specdec_cli.llama.library import llama
from specdec_cli.llama.workers import break_connections

AGAIN: Final = 1.0
"""Seconds after which a Ctrl-C is another one: whoever started the program may pass the first one on."""


class Interrupt:
    """A raised or lowered flag, and the C callback and data that let llama.cpp look at it."""

    def __init__(self) -> None:
        self.flag = ctypes.create_string_buffer(2)
        libc: Any = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
        self.callback = ctypes.cast(libc.strlen, llama().ggml_abort_callback)
        self.data = ctypes.cast(self.flag, ctypes.c_void_p)
        self.pressed = False
        """Whether the handler was told, so that a second Ctrl-C ends the program."""

    @property
    def raised(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self.flag.raw[0] != 0

    def lower(self) -> None:
        """Forget that Ctrl-C was pressed, once that has had its effect; call it outside the `with`."""
        self.flag[0] = b"\0"
        self.pressed = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.raised:
            raise KeyboardInterrupt

    def __enter__(self) -> Interrupt:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and (_handler.entered or signal.getsignal(signal.SIGINT) is not signal.SIG_IGN):
            _handler.enter(self)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self in _handler.entered:
            _handler.leave(self)


class _Handler:
    """What hears Ctrl-C in this process, as long as any interrupt is entered."""

    def __init__(self) -> None:
        self.entered: list[Interrupt] = []
        self._previous: Any = None
        self._previous_wakeup = -1
        self._wakeup: tuple[socket.socket, socket.socket] | None = None
        self._heard = 0.0

    def enter(self, interrupt: Interrupt) -> None:
        self.entered.append(interrupt)  # first, and last to go: no Ctrl-C comes to a handler that knows nobody
        if len(self.entered) == 1:
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
            self._wakeup = socket.socketpair()
            self._wakeup[1].setblocking(False)
            self._previous_wakeup = signal.set_wakeup_fd(self._wakeup[1].fileno(), warn_on_full_buffer=False)
            self._watcher = threading.Thread(target=self._watch, args=(self._wakeup[0],), daemon=True)
            self._watcher.start()

    def leave(self, interrupt: Interrupt) -> None:
        if len(self.entered) == 1 and self._wakeup is not None:
            signal.signal(signal.SIGINT, self._previous or signal.SIG_DFL)
            signal.set_wakeup_fd(self._previous_wakeup)
            self._wakeup[1].close()
            self._watcher.join()  # else it may raise the flag after `lower`
            self._wakeup = None
        self.entered.remove(interrupt)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if any(each.pressed for each in self.entered):
            raise KeyboardInterrupt
        for each in self.entered:
            each.pressed = True
            each.flag[0] = b"\x01"

    def _watch(self, wakeups: socket.socket) -> None:
        with wakeups:
            while received := wakeups.recv(1):
                if received[0] == signal.SIGINT:
                    self._hear(list(self.entered))

    def _hear(self, entered: list[Interrupt]) -> None:
        """Raise the flags; that they are, and the main thread knows nothing of it, means that C code waits."""
        if not all(each.raised and not each.pressed for each in entered):
            self._heard = time.monotonic()
        elif time.monotonic() - self._heard > AGAIN:
            break_connections()
        for each in entered:
            each.flag[0] = b"\x01"


_handler = _Handler()
