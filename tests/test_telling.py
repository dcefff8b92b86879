"""What an answer leaves behind when it cannot go on."""

from __future__ import annotations

import io
import os

import pytest

from specdec_cli import telling
from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind
from specdec_cli.llama import library
from specdec_cli.status import StatusLine
from specdec_cli.telling import before_last_words, last_words
from specdec_cli.terminal import Terminal


class Tty(io.BytesIO):
    def isatty(self) -> bool:
        return True


class LeftError(Exception):
    """In place of the end of this process."""


def test_a_failed_assertion_in_c_ends_the_line_of_text_and_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leave(code: int) -> None:
        raise LeftError(code)

    monkeypatch.setattr(os, "_exit", leave)
    terminal = Terminal(io.BytesIO(), Tty(), io.StringIO(), {})
    status = StatusLine(terminal)
    status.write([Segment("half a line", Kind.BONUS)])
    with pytest.raises(LeftError, match="3"), last_words(terminal, status):
        library._report_abort(b"ggml.c:1: GGML_ASSERT(false) failed")
    assert isinstance(terminal.stdout, Tty)
    assert isinstance(terminal.stderr, io.StringIO)
    assert terminal.stdout.getvalue() == b"half a line\n"
    first, second = terminal.stderr.getvalue().splitlines()
    assert first.startswith("error: llama.cpp stopped: ")
    assert "GGML_ASSERT(false) failed" in first
    assert second.startswith("hint: ")


def test_what_has_to_come_first_comes_before_a_word_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "_exit", lambda _: None)
    terminal = Terminal(io.BytesIO(), io.BytesIO(), io.StringIO(), {})
    stderr, said = terminal.stderr, list[str]()
    assert isinstance(stderr, io.StringIO)
    with last_words(terminal, StatusLine(terminal)), before_last_words(lambda: said.append(stderr.getvalue())):
        library._report_abort(b"failed")
    assert said == [""]


def test_what_comes_first_goes_from_inside_out_and_need_not_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "_exit", lambda _: None)
    terminal = Terminal(io.BytesIO(), io.BytesIO(), io.StringIO(), {})
    done: list[str] = []
    with (
        last_words(terminal, StatusLine(terminal)),
        before_last_words(lambda: done.append("outer")),
        before_last_words(lambda: 1 / 0),
        before_last_words(lambda: done.append("inner")),
    ):
        library._report_abort(b"failed")
    assert done == ["inner", "outer"]
    assert isinstance(terminal.stderr, io.StringIO)
    assert terminal.stderr.getvalue().startswith("error: llama.cpp stopped: failed")


def test_a_lost_worker_is_what_the_last_words_are_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "_exit", lambda _: None)
    monkeypatch.setattr(telling, "explain_loss", lambda message: (f"lost ({message})", "find it"))
    terminal = Terminal(io.BytesIO(), io.BytesIO(), io.StringIO(), {})
    with last_words(terminal, StatusLine(terminal)):
        library._report_abort(b"x.cpp:1: broken")
    assert isinstance(terminal.stderr, io.StringIO)
    assert terminal.stderr.getvalue() == "error: lost (broken)\nhint: find it\n"


def test_after_an_answer_nothing_of_it_is_called_any_more() -> None:
    terminal = Terminal(io.BytesIO(), io.BytesIO(), io.StringIO(), {})
    with last_words(terminal, StatusLine(terminal)):
        assert library._on_abort is not None
    assert library._on_abort is None
