"""The live line against a terminal emulator: after any text, the screen holds that text and nothing else."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from specdec_cli import status
from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind
from specdec_cli.status import Cursor, StatusLine, fit
from specdec_cli.terminal import Terminal
from tests.pty_process import PtyScreen, wrapped

PARTS = ["α 0.55", "STATUS", "x" * 60]


def terminal_on(screen: PtyScreen, *, stdout: Path | None = None, term: str = "xterm") -> Terminal:
    out = os.fdopen(os.dup(screen.slave), "wb") if stdout is None else stdout.open("wb")
    err = os.fdopen(os.dup(screen.slave), "w", encoding="utf-8")
    return Terminal(sys.stdin.buffer, out, err, {"TERM": term})


def close(terminal: Terminal, screen: PtyScreen) -> None:
    terminal.stdout.close()
    terminal.stderr.close()
    screen.hang_up()


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change is drawn: the hardest case."""
    monkeypatch.setattr(status, "SECONDS_BETWEEN", 0.0)


def play(text: str, screen: PtyScreen, *, seed: int = 0) -> None:
    """Write `text` in pieces of random length, the status drawn after each."""
    terminal, generator = terminal_on(screen), random.Random(seed)
    line = StatusLine(terminal)
    while text:
        length = generator.choice([1, 1, 2, 3, 5, 30])
        line.write([Segment(text[:length], Kind.ACCEPTED)])
        line.show(PARTS)
        text = text[length:]
    line.close()
    close(terminal, screen)


def random_text(seed: int) -> str:
    generator = random.Random(seed)
    pieces = ["\n", "\n\n", "x" * 79, "x" * 80, "x" * 81, "y" * 200, *"abc de fgh ijk lmno pqr"]
    return "".join(generator.choice(pieces) for _ in range(300))


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (80, 10), (40, 10), (20, 4)])
def test_the_scrollback_holds_each_line_of_text_once_in_order_and_nothing_else(columns: int, rows: int) -> None:
    text = random_text(columns + rows)
    with PtyScreen(columns, rows) as screen:
        play(text, screen, seed=rows)
        assert b"STATUS" in screen.received
        assert screen.lines() == wrapped(text, columns)
        assert screen.shows_cursor


def test_wide_characters_and_tabs_at_the_margin_stay_whole() -> None:
    text = "".join("漢字\t" + "b" * length + "語\n" + "c" * length + "\tend語x\n" for length in range(60, 82))
    with PtyScreen(80, 10) as shown, PtyScreen(80, 10) as plain:
        play(text, shown)
        os.write(plain.slave, text.encode())
        plain.hang_up()
        assert b"STATUS" in shown.received
        assert shown.lines() == plain.lines()


def test_a_window_that_changes_its_height_keeps_every_line() -> None:
    text = "".join(f"line {number}\n" for number in range(40))
    with PtyScreen(80, 10) as screen:
        terminal = terminal_on(screen)
        line = StatusLine(terminal)
        for number, row in enumerate(text.splitlines(keepends=True)):
            line.write([Segment(row, Kind.ACCEPTED)])
            line.show(PARTS)
            if number == 20:
                screen.wait_for("line 20")
                screen.resize(80, 16)
        line.close()
        close(terminal, screen)
        assert screen.lines() == wrapped(text, 80)


def test_the_status_stands_below_the_text_and_leaves_no_trace() -> None:
    with PtyScreen(80, 5) as screen:
        terminal = terminal_on(screen)
        line = StatusLine(terminal)
        line.write([Segment("one\ntwo\nthree\nfour\nfive", Kind.BONUS)])
        line.show(PARTS)
        screen.wait_for("\x1b8")
        assert screen.lines() == ["one", "two", "three", "four", "five", "α 0.55 · STATUS · " + "x" * 60]
        line.close()
        terminal.write_message("summary")
        close(terminal, screen)
        assert screen.lines() == ["one", "two", "three", "four", "five", "summary"]


def test_the_status_comes_back_after_each_piece_but_changes_only_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    with PtyScreen() as screen:
        terminal = terminal_on(screen)
        line = StatusLine(terminal)
        line.show(["first"])
        monkeypatch.setattr(status, "SECONDS_BETWEEN", 1e9)
        for _ in range(2):
            line.write([Segment("text", Kind.BONUS)])
            line.show(["second"])
            line.show(["third"])
        close(terminal, screen)
        assert screen.received.count(b"first") == 3
        assert b"second" not in screen.received
        assert b"third" not in screen.received


def test_a_notice_during_an_answer_waits_for_its_end() -> None:
    with PtyScreen() as screen:
        terminal = terminal_on(screen)
        line = StatusLine(terminal)
        line.show_loading("loading")
        line.notice("before")
        line.write([Segment("half a ", Kind.BONUS)])
        line.notice("after")
        line.write([Segment("line", Kind.BONUS)])
        line.close()
        close(terminal, screen)
        assert screen.lines() == ["note: before", "half a line", "note: after"]


def test_the_line_after_ctrl_c_starts_below_the_terminals_own_echo() -> None:
    with PtyScreen() as screen:
        terminal = terminal_on(screen)
        line = StatusLine(terminal)
        line.write([Segment("text\n", Kind.BONUS)])
        terminal.write_message("^C")
        line.close(interrupted=True)
        terminal.write_message("summary")
        close(terminal, screen)
        assert screen.lines() == ["text", "^C", "summary"]


def test_text_that_goes_into_a_file_has_its_status_on_one_line(tmp_path: Path) -> None:
    with PtyScreen() as screen:
        terminal = terminal_on(screen, stdout=tmp_path / "answer")
        line = StatusLine(terminal)
        for number in range(3):
            line.write([Segment("text\n", Kind.BONUS)])
            line.show([f"status {number}"])
        screen.wait_for("status 2")
        assert screen.lines() == ["status 2"]
        line.close()
        close(terminal, screen)
        assert screen.lines() == [""]
        assert (tmp_path / "answer").read_text() == "text\n" * 3


def test_a_line_that_was_closed_serves_another_answer() -> None:
    with PtyScreen() as screen:
        terminal = terminal_on(screen)
        line = StatusLine(terminal)
        for text in ("x" * 79, "again"):
            line.write([Segment(text, Kind.BONUS)])
            line.show(PARTS)
            line.close()
        close(terminal, screen)
        assert screen.received.count(b"STATUS") == 2
        assert screen.lines() == ["x" * 79, "again"]


def test_the_status_of_another_answer_is_shown_at_once_and_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "SECONDS_BETWEEN", 1e9)
    with PtyScreen() as screen:
        terminal = terminal_on(screen)
        line = StatusLine(terminal)
        for parts in (["first"], ["second"]):
            line.write([Segment("text", Kind.BONUS)])
            line.show(parts)
            line.close()
        close(terminal, screen)
        assert (screen.received.count(b"first"), screen.received.count(b"second")) == (1, 1)


@pytest.mark.parametrize("hidden", [True, False])
def test_nothing_is_drawn_where_no_line_can_be_rewritten(hidden: bool) -> None:
    with PtyScreen() as screen:
        terminal = terminal_on(screen, term="xterm" if hidden else "dumb")
        line = StatusLine(terminal, hidden=hidden)
        line.show_loading("loading")
        line.write([Segment("text", Kind.BONUS)])
        line.show(PARTS)
        line.close()
        close(terminal, screen)
        assert screen.received == b"text\r\n"


@pytest.mark.parametrize(
    ("room", "expected"),
    [(80, "α 1 · γ 4 · 9 tok/s"), (18, "α 1 · γ 4"), (9, "α 1 · γ 4"), (8, "α 1"), (2, "α ")],
)
def test_a_narrow_window_drops_whole_parts_from_the_end(room: int, expected: str) -> None:
    assert fit(["α 1", "γ 4", "9 tok/s"], room) == expected


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("", True),
        ("x" * 79, True),
        ("x" * 80, False),
        ("x" * 81, True),
        ("語" * 40, False),
        ("x" + "語" * 40, True),
        ("x" * 80 + "\t", False),
        ("x" * 80 + "\n", True),
        ("x" * 77 + "👍🏽", False),
        ("é" * 79, True),
        ("x👩\u200d", False),
    ],
)
def test_the_cursor_is_safe_only_where_no_terminal_can_be_waiting_at_the_margin(text: str, safe: bool) -> None:
    cursor = Cursor(east_asian=False)
    cursor.advance(text, 80)
    assert cursor.safe(80) is safe


def test_ambiguous_widths_are_trusted_except_in_east_asian_languages() -> None:
    for east_asian, safe in ((False, True), (True, False)):
        cursor = Cursor(east_asian=east_asian)
        cursor.advance("Привет, " * 6, 80)
        assert cursor.safe(80) is safe


def test_after_a_resize_the_cursor_is_unknown_until_the_next_line() -> None:
    cursor = Cursor(east_asian=False)
    cursor.advance("text", 80)
    assert not cursor.safe(60)
    cursor.advance("more\n", 60)
    assert cursor.safe(60)


def test_the_line_is_erased_from_below_the_text_never_from_the_corner_of_the_screen() -> None:
    with PtyScreen(80, 10) as screen:
        terminal = terminal_on(screen)
        line = StatusLine(terminal)
        line.show(PARTS)
        line.write([Segment("first", Kind.BONUS)])
        line.close()
        close(terminal, screen)
        assert screen.lines() == ["first"]
        assert screen.received.count(status.ERASE_BELOW.encode()) == 1
        assert (status.ROW_BELOW + status.ERASE_BELOW + status.RESTORE).encode() in screen.received


def test_what_is_said_after_an_answer_into_a_pipe_starts_on_a_line_of_its_own() -> None:
    reading, writing = os.pipe()
    with PtyScreen(80, 10) as screen, os.fdopen(writing, "wb") as pipe:
        error = os.fdopen(os.dup(screen.slave), "w", encoding="utf-8")
        terminal = Terminal(sys.stdin.buffer, pipe, error, {"TERM": "xterm"})
        line = StatusLine(terminal)
        line.write([Segment("9, 9", Kind.BONUS)])
        line.close()
        terminal.notice("20 tokens")
        error.close()
        screen.hang_up()
        assert screen.lines() == ["", "note: 20 tokens"]
    assert os.read(reading, 100) == b"9, 9"
    os.close(reading)
