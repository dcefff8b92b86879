"""Waiting for what may never come: in threads that nothing waits for at the end of the program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, InvalidStateError, wait
from contextlib import suppress
from threading import Thread
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

MOMENT: Final = 0.05
"""Seconds between two looks at whether to wait at all."""


def begin(act: Callable[[], Result], undo: Callable[[Result], object] = lambda _: None) -> Future[Result]:
    """Do `act` in a thread of its own, and `undo` what came of it if the future is cancelled before."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            result = act()
        except Exception as error:
            with suppress(InvalidStateError):  # nobody waits any more
                future.set_exception(error)
            return
        try:
            future.set_result(result)
        except InvalidStateError:
            undo(result)

    Thread(target=run, daemon=True).start()
    return future


def ended(futures: Iterable[Future[Any]], patience: float, check: Callable[[], object]) -> bool:
    """Whether all of them end within `patience` seconds; `check` is called now and then meanwhile, and may raise.

    What the first of them to fail raises ends the wait for the others.
    """
    deadline, pending = time.monotonic() + patience, set(futures)
    while pending and time.monotonic() < deadline:
        done, pending = wait(pending, timeout=MOMENT, return_when=FIRST_EXCEPTION)
        check()
        for each in done:
            each.result()
    return not pending
