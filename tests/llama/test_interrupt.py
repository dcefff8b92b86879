from __future__ import annotations

import signal
import socket
import threading
from typing import Any

import pytest

from specdec_cli.llama.interrupt import Interrupt


def test_the_first_ctrl_c_only_raises_the_flag() -> None:
    with Interrupt() as interrupt:
        interrupt.check()
        assert not interrupt.raised
        signal.raise_signal(signal.SIGINT)
        assert interrupt.raised
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()


def test_the_second_ctrl_c_raises_where_the_program_is() -> None:
    with Interrupt():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_raises_the_flags_of_all_that_are_entered() -> None:
    with Interrupt() as outer:
        with Interrupt() as inner:
            signal.raise_signal(signal.SIGINT)
            assert (outer.raised, inner.raised) == (True, True)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(("entering", "function"), [(True, "set_wakeup_fd"), (False, "signal")])
def test_a_ctrl_c_that_comes_while_it_is_entered_or_left_is_heard(
    entering: bool, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(signal, function)

    def pressed(*arguments: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    interrupt = Interrupt()
    with monkeypatch.context() as patch:
        if entering:
            patch.setattr(signal, function, pressed)
        with interrupt:
            patch.undo() if entering else patch.setattr(signal, function, pressed)
    assert interrupt.raised


def test_c_code_sees_the_flag() -> None:
    interrupt = Interrupt()
    assert not interrupt.callback(interrupt.data)
    interrupt.flag[0] = b"\x01"
    assert interrupt.callback(interrupt.data)


def test_the_flag_is_raised_while_the_main_thread_runs_no_python() -> None:
    with Interrupt() as interrupt:
        watched = threading.Event()

        class Flag:
            raw = b"\0"

            def __setitem__(self, index: int, value: bytes) -> None:
                if threading.current_thread() is not threading.main_thread():
                    watched.set()

        interrupt.flag = Flag()  # type: ignore[assignment]
        signal.raise_signal(signal.SIGINT)
        assert watched.wait(30)


def test_handler_descriptor_and_threads_are_as_before_afterwards() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    before = signal.getsignal(signal.SIGINT)
    threads = set(threading.enumerate())
    with ours, theirs:
        signal.set_wakeup_fd(ours.fileno())
        try:
            with Interrupt():
                assert signal.getsignal(signal.SIGINT) != before
                watchers = set(threading.enumerate()) - threads
                assert len(watchers) == 1
            for watcher in watchers:
                watcher.join(30)
                assert not watcher.is_alive()
        finally:
            assert signal.set_wakeup_fd(-1) == ours.fileno()
    assert signal.getsignal(signal.SIGINT) is before


def test_it_can_be_entered_again() -> None:
    interrupt = Interrupt()
    for _ in range(3):
        with interrupt:
            interrupt.check()
    with interrupt:
        signal.raise_signal(signal.SIGINT)
    assert interrupt.raised


def test_a_program_that_was_told_to_ignore_ctrl_c_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert not interrupt.raised
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_outside_the_main_thread_it_leaves_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    inside: list[object] = []

    def work() -> None:
        with Interrupt() as interrupt:
            inside.append(signal.getsignal(signal.SIGINT))
            interrupt.check()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert inside == [before]
