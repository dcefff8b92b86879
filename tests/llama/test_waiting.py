"""What may never come is waited for as long as somebody wants to, and leaves nothing behind."""

from __future__ import annotations

import math
import subprocess
import sys
from threading import Event
from typing import Final

import pytest

from specdec_cli.llama.waiting import begin, ended
from tests.worker_process import PATIENCE

LEAVE: Final = """
from threading import Event
from specdec_cli.llama.waiting import begin
begin(Event().wait)
"""


def never() -> None:
    """What waits for longer than any test."""
    Event().wait()


def enough() -> None:
    """What looks whether to wait on, and does not want to."""
    raise KeyboardInterrupt


def test_what_ends_has_its_results() -> None:
    futures = [begin(lambda: 1), begin(lambda: 2)]
    assert ended(futures, math.inf, lambda: None)
    assert [each.result() for each in futures] == [1, 2]


def test_what_does_not_end_is_not_waited_for_beyond_the_patience() -> None:
    assert not ended([begin(lambda: 1), begin(never)], 0.1, lambda: None)


def test_a_failure_ends_the_wait_for_the_others() -> None:
    with pytest.raises(ZeroDivisionError):
        ended([begin(never), begin(lambda: 1 // 0)], PATIENCE, lambda: None)


def test_a_look_ends_the_wait() -> None:
    with pytest.raises(KeyboardInterrupt):
        ended([begin(never)], PATIENCE, enough)


def test_who_wants_to_end_hears_of_no_failure() -> None:
    failed = begin(lambda: 1 // 0)
    assert isinstance(failed.exception(PATIENCE), ZeroDivisionError)
    with pytest.raises(KeyboardInterrupt):
        ended([failed], PATIENCE, enough)


def test_what_comes_after_nobody_waits_is_undone() -> None:
    go, undone = Event(), Event()
    future = begin(lambda: go.wait(PATIENCE), undo=lambda _: undone.set())
    assert future.cancel()
    go.set()
    assert undone.wait(PATIENCE)


def test_a_failure_after_nobody_waits_is_nobodys() -> None:
    go, left = Event(), Event()

    def fail() -> None:
        go.wait(PATIENCE)
        left.set()
        raise ZeroDivisionError

    future = begin(fail)
    assert future.cancel()
    go.set()
    assert left.wait(PATIENCE)


def test_a_program_ends_whatever_is_still_waited_for() -> None:
    assert subprocess.run([sys.executable, "-c", LEAVE], timeout=PATIENCE, check=False).returncode == 0
