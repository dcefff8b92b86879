"""What a chat reads its lines from, and the keys that it does not read yet. The reader of keys itself is in `keys`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from specdec_cli.terminal import Terminal


class Reader(Protocol):
    """What a chat reads from. `by_hand`: a person types, who may answer, correct and stop."""

    by_hand: bool

    def read(self, draft: str = "") -> str:
        """The next line, which may hold several; `draft` is there to be edited.

        Raises:
            EOFError: there are no more.
            KeyboardInterrupt: Ctrl-C.
        """
        ...


class PipeReader:
    """Each line of a pipe. A byte order mark is dropped, CRLF is LF, and what is not UTF-8 becomes U+FFFD."""

    by_hand = False

    def __init__(self, terminal: Terminal) -> None:
        self._lines = terminal.stdin
        self._decode: Callable[[bytes], str] = lambda data: data.decode("utf-8-sig", "replace")

    def read(self, draft: str = "") -> str:
        """See `Reader`; a `draft` is nothing that a pipe could edit."""
        del draft
        line = self._lines.readline()
        if not line:
            raise EOFError
        text = self._decode(line)
        self._decode = lambda data: data.decode("utf-8", "replace")
        return text.removesuffix("\n").removesuffix("\r")


def is_by_hand(terminal: Terminal) -> bool:
    """Whether there is a person who can see a prompt and type."""
    return terminal.reads_keys and (terminal.shows_messages or terminal.shows_text)


class SilentKeys:
    """In the `with` keys do not show, so that they cannot mix with an answer, and wait for whoever reads next.

    Ctrl-C is a signal as ever. Where nobody types nothing changes.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._descriptor = terminal.stdin.fileno() if sys.platform != "win32" and is_by_hand(terminal) else None
        self._modes: Any = None

    def __enter__(self) -> SilentKeys:
        if sys.platform != "win32" and self._descriptor is not None:
            import termios

            self._modes = termios.tcgetattr(self._descriptor)
            received, sent, control, local, *rest = self._modes
            local &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(
                self._descriptor, termios.TCSANOW, [received & ~termios.ICRNL, sent, control, local, *rest]
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def restore(self) -> None:
        """Let keys be as they were found."""
        if sys.platform != "win32" and self._descriptor is not None:
            import termios

            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._modes)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """In this `with` keys are as they were found, for another program."""
        self.restore()
        try:
            yield
        finally:
            self.__enter__()
