"""What each stream is given, and what a broken one does."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, TextIO

import pytest

from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind
from specdec_cli.errors import SpecdecError
from specdec_cli.terminal import PipeClosedError, Terminal, fold
from tests.pty_process import PtyScreen

FULL: Final = Path("/dev/full")
NASTY: Final = ["[/INST]", "list[int]", "[bold]x[/bold]", ":smile:", "[/]", "\\[x]", "{}%s"]


class Tty(io.BytesIO):
    def isatty(self) -> bool:
        return True


def terminal(
    *,
    out: IO[bytes] | None = None,
    err: TextIO | None = None,
    quiet: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Terminal:
    stderr = err or io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    return Terminal(io.BytesIO(), out or io.BytesIO(), stderr, environment or {}, quiet)


def written(terminal: Terminal) -> str:
    """What is on its stderr."""
    stream = terminal.stderr.buffer
    assert isinstance(stream, io.BytesIO)
    return stream.getvalue().decode()


def tty_stderr() -> io.TextIOWrapper:
    return io.TextIOWrapper(Tty(), "utf-8", write_through=True)


@pytest.mark.parametrize("text", [*NASTY, "a\tb  \r\n\x1b[31m\x00\x7f\u0085", "x" * 500])
def test_text_in_a_pipe_is_the_text_byte_for_byte(text: str) -> None:
    out = io.BytesIO()
    terminal(out=out).write([Segment(text, Kind.ACCEPTED)], by_kind=True)
    assert out.getvalue() == text.encode()


@pytest.mark.parametrize("text", NASTY)
def test_messages_are_literal_whatever_they_hold(text: str) -> None:
    console = terminal()
    console.notice(text)
    console.error(text, text)
    console.show(text)
    assert written(console) == f"note: {text}\nerror: {text}\nhint: {text}\n{text}\n"


def test_a_message_stays_one_line_however_long_and_whatever_it_holds() -> None:
    console = terminal()
    console.error("a/path\nwith\x1b[31m" + "x" * 300, "")
    assert written(console) == "error: a/path␊with␛[31m" + "x" * 300 + "\n"


def test_control_characters_become_visible_on_a_terminal_but_lines_and_tabs_work() -> None:
    out = Tty()
    shown = terminal(out=out).write([Segment("a\x1b]0;title\x07\r\n\tb\x7f\x9b", Kind.BONUS)])
    assert shown == "a␛]0;title␇␍\n\tb␡\ufffd"
    assert out.getvalue().decode() == shown


def test_dim_text_is_dim_on_a_terminal_with_colours_and_the_same_text_elsewhere() -> None:
    for out, environment, expected in (
        (Tty(), {}, "\x1b[2mwhy\x1b[0m"),
        (Tty(), {"NO_COLOR": "1"}, "why"),
        (io.BytesIO(), {}, "why"),
    ):
        terminal(out=out, environment=environment).write([Segment("why", Kind.BONUS)], dim=True)
        assert out.getvalue().decode() == expected


def test_styled_parts_are_literal_and_plain_where_nothing_is_styled() -> None:
    console = terminal()
    console.show_styled([("[bold]", "dim"), (":smile:", "dim strike")])
    assert written(console) == "[bold]:smile:\n"


def test_tokens_are_coloured_by_kind_on_a_terminal() -> None:
    out = Tty()
    segments = [Segment("a", Kind.ACCEPTED), Segment("b", Kind.CORRECTION), Segment("c", Kind.BONUS)]
    assert terminal(out=out).write(segments, by_kind=True) == "abc"
    assert out.getvalue() == b"\x1b[32ma\x1b[0m\x1b[31mb\x1b[0m\x1b[36mc\x1b[0m"


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_and_dumb_terminals_get_plain_text(environment: Mapping[str, str]) -> None:
    out = Tty()
    terminal(out=out, environment=environment).write([Segment("a", Kind.ACCEPTED)], by_kind=True)
    assert out.getvalue() == b"a"


def test_each_stream_is_judged_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = io.BytesIO()
    console = terminal(out=out, err=tty_stderr())
    console.write([Segment("a", Kind.ACCEPTED)], by_kind=True)
    console.notice("b")
    assert out.getvalue() == b"a"
    assert "\x1b[" in written(console)


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_stderr_that_is_no_terminal_never_holds_an_escape(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    console = terminal()
    console.error("message", "hint")
    assert "\x1b" not in written(console)


def test_quiet_keeps_notices_and_the_status_away_but_not_errors() -> None:
    console = terminal(err=tty_stderr(), quiet=True)
    console.notice("notice")
    assert written(console) == ""
    assert not console.moves_cursor
    console.error("message", "")
    assert "message" in written(console)


@pytest.mark.parametrize(("term", "moves"), [("xterm", True), ("dumb", False)])
def test_lines_are_rewritten_only_where_the_cursor_can_move(term: str, moves: bool) -> None:
    assert terminal(err=tty_stderr(), environment={"TERM": term}).moves_cursor is moves
    assert not terminal(environment={"TERM": term}).moves_cursor


def test_a_closed_pipe_ends_the_answer_and_leaves_nothing_to_flush() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    out = os.fdopen(writer, "wb")
    with pytest.raises(PipeClosedError):
        terminal(out=out).write_text("text")
    out.close()


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device here")
def test_a_full_disk_is_told_and_leaves_nothing_to_flush() -> None:
    with FULL.open("wb") as out, pytest.raises(SpecdecError, match="cannot be written: No space left"):
        terminal(out=out).write_text("text")


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device here")
def test_an_error_that_cannot_be_told_does_not_raise_another() -> None:
    with FULL.open("w") as err:
        terminal(err=err).error("message", "hint")
        assert os.fstat(err.fileno()).st_rdev == Path(os.devnull).stat().st_rdev


def test_a_closed_stderr_pipe_is_ignored() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as err:
        terminal(err=err).error("message", "hint")
        terminal(err=err).notice("notice")


def test_the_terminal_of_this_process_is_its_three_streams() -> None:
    with PtyScreen() as screen:
        console = Terminal(sys.__stdin__.buffer, os.fdopen(os.dup(screen.slave), "wb"), sys.__stderr__, os.environ)  # type: ignore[union-attr, arg-type]
        assert console.shows_text
        console.stdout.close()
    ours = Terminal.of_process(quiet=True)
    assert (ours.stderr, ours.quiet) == (sys.stderr, True)


def test_a_long_line_is_folded_at_words_and_goes_on_further_in() -> None:
    line = "caches    passed: answers with many rejections were evaluated again from nothing and agree"
    assert fold(line, 48, 10).split("\n") == [
        "caches    passed: answers with many rejections",
        "          were evaluated again from nothing and",
        "          agree",
    ]
    assert fold(line, None, 10) == line
    assert fold("a   table  of  columns", 40, 2) == "a   table  of  columns"
