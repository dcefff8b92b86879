"""The REPL in a real terminal: keys, pasting, history, narrow windows, Ctrl-C, and what is on the screen then."""

from __future__ import annotations

import json
import os
import re
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.pty_process import PATIENCE, PtyProcess, PtyScreen, wrapped
from tests.spoken import repeats, says

LINES = [f"line {number}: [/INST] list[int] [bold] :smile:" + " word" * (number % 20) + "\n" for number in range(40)]
PASTE = b"\x1b[200~", b"\x1b[201~"
CTRL_C, CTRL_D, ALT_ENTER, UP = b"\x03", b"\x04", b"\x1b\r", b"\x1b[A"
READY = "/help lists commands"


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says LINES."""
    return says(LINES, tmp_path_factory.mktemp("speakers") / "speaker.gguf")


@pytest.fixture(scope="module")
def greeter(speaker: Path) -> Path:
    """Says `hello there`."""
    return says(["hello ", "there"], speaker.parent / "greeter.gguf")


@pytest.fixture(scope="module")
def endless(speaker: Path) -> Path:
    """Says `tick` forever."""
    return repeats("tick ", speaker.parent / "endless.gguf")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where this test's history lies."""
    return tmp_path / "state"


class Chatting(PtyProcess):
    """`specdec chat` in a terminal of its own."""

    def __init__(
        self, state: Path, *arguments: object, environment: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        own = {"XDG_STATE_HOME": str(state), "NO_COLOR": "", "VISUAL": "", "EDITOR": "", **(environment or {})}
        super().__init__(["chat", "--threads", "1", "-k", "2", *arguments], environment=own, **options)
        self.see(READY)
        self.see("\n>")

    def see(self, text: str, *, times: int = 1) -> None:
        """Wait until `text` is on the screen or scrolled off it, so many `times`."""

        def shown() -> str:
            return "\n".join(self.lines())

        with self._changed:
            self._changed.wait_for(lambda: shown().count(text) >= times or self._ended, PATIENCE)
            assert shown().count(text) >= times, shown()

    def enter(self, text: str, *, awaiting: str = "tokens/s", times: int = 1) -> None:
        """Type `text` and Enter, and wait until something was shown so many `times`."""
        self.press(text.encode() + b"\r")
        self.see(awaiting, times=times)

    def leave(self) -> int:
        """Ctrl-D; the exit code."""
        self.press(CTRL_D)
        return self.wait()


def messages(path: Path) -> list[str]:
    return [each["content"] for each in json.loads(path.read_text())["messages"]]


@pytest.mark.parametrize(("columns", "rows"), [(80, 10), (40, 10)])
def test_long_answers_stand_once_and_whole_in_the_scrollback(
    columns: int, rows: int, speaker: Path, state: Path
) -> None:
    with Chatting(state, "-m", speaker, columns=columns, rows=rows) as chat:
        chat.enter("one")
        chat.enter("two", times=2)
        assert chat.leave() == 0
        lines = chat.lines()
        for question in ("> one", "> two"):
            start = lines.index(question) + 1
            expected = wrapped("".join(LINES), columns)
            assert lines[start : start + len(expected)] == expected
            assert "".join(lines[start + len(expected) :]).startswith("40 tokens · ")
            del lines[start - 1]
        assert chat.shows_cursor


def test_a_window_that_changes_its_size_keeps_every_line(speaker: Path, state: Path) -> None:
    with Chatting(state, "-m", speaker, rows=10) as chat:
        chat.press(b"one\r")
        chat.see("line 20")
        chat.resize(80, 16)
        chat.see("tokens/s")
        chat.resize(80, 24)
        chat.enter("two", times=2)
        assert chat.leave() == 0
        text = "\n".join(chat.lines())
        assert text.count("\n".join(wrapped("".join(LINES), 80))) == 2


def test_ctrl_c_ends_an_answer_and_what_was_said_is_kept(endless: Path, state: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with Chatting(state, "-m", endless, "-c", 0, "--session", path, rows=10) as chat:
        for round_ in (1, 2):
            before = chat.received.count(b"tick")
            chat.press(b"go\r")
            chat.wait_for("tick", times=before + 300)
            chat.press(CTRL_C)
            chat.see("interrupted", times=round_)
        assert chat.leave() == 0
        shown = "\n".join(chat.lines())
        assert chat.shows_cursor
    answers = [
        re.sub(r"\s", "", text) for text in re.findall(r"> go\n(.*?)\n\d+ tokens, interrupted", shown, re.DOTALL)
    ]
    asked = messages(path)
    assert asked[::2] == ["go", "go"]
    assert [re.sub(r"\s", "", text) for text in asked[1::2]] == [re.sub(r"\s", "", text) for text in answers]
    assert "^C" not in shown


def test_ctrl_c_gives_up_a_line_and_at_an_empty_one_says_how_to_leave(greeter: Path, state: Path) -> None:
    with Chatting(state, "-m", greeter) as chat:
        chat.press(b"half a line" + CTRL_C)
        chat.press(CTRL_C)
        chat.see("Ctrl-D or /exit ends")
        chat.press(UP + b" after all\r")
        chat.see("tokens/s")
        assert chat.leave() == 0
        assert "> half a line after all" in chat.lines()


def test_several_lines_by_alt_enter_and_by_pasting_are_one_message(greeter: Path, state: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with Chatting(state, "-m", greeter, "--session", path) as chat:
        chat.press(b"\r   \r")  # blanks are no message
        chat.press(b"first" + ALT_ENTER + b"second\r")
        chat.press(PASTE[0] + b"/help\r\n\tpasted [/b]\r\n" + PASTE[1])
        chat.see("pasted")
        chat.press(b"\r")
        chat.see("tokens/s", times=2)
        assert chat.leave() == 0
    assert messages(path)[::2] == ["first\nsecond", "/help\n\tpasted [/b]\n"]


def test_history_is_kept_across_runs_for_its_owner_alone(greeter: Path, state: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with Chatting(state, "-m", greeter) as chat:
        chat.press(b"a" + ALT_ENTER + b"b\r")
        chat.see("tokens/s")
        assert chat.leave() == 0
    with Chatting(state, "-m", greeter, "--session", path) as chat:
        chat.press(UP + b"\r")
        chat.see("tokens/s")
        assert chat.leave() == 0
    assert messages(path)[0] == "a\nb"
    (history,) = (state / "specdec").iterdir()
    assert history.stat().st_mode & 0o077 == 0


def test_without_a_place_for_its_history_a_chat_works(greeter: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.touch()
    with Chatting(nowhere, "-m", greeter) as chat:
        chat.enter("x")
        assert chat.leave() == 0


def test_tab_completes_commands_settings_and_files(greeter: Path, state: Path, tmp_path: Path) -> None:
    (tmp_path / "my notes.txt").write_text("from a file")
    path = tmp_path / "s.json"
    with Chatting(state, "-m", greeter, "--session", path) as chat:
        chat.press(b"/rea")
        chat.see("Put the text of a file")
        chat.press(b"\t")
        chat.see("/read")
        chat.press(f" {tmp_path}/my".encode())
        chat.see("my notes.txt")
        chat.press(b"\t")
        chat.press(b"\r")
        chat.see("goes before your next message")
        chat.enter("x")
        assert chat.leave() == 0
    assert messages(path)[0] == "from a file\n\nx"


def test_the_keys_of_the_terminal_are_left_as_they_were(endless: Path, state: Path) -> None:
    with PtyScreen() as fresh:
        before = termios.tcgetattr(fresh.slave)
    with Chatting(state, "-m", endless, "-c", 0) as chat:
        chat.press(b"go\r")
        chat.wait_for("tick", times=50)
        assert not termios.tcgetattr(chat.slave)[3] & termios.ECHO
        chat.press(CTRL_C)
        chat.press(CTRL_D)
        assert chat._process.wait(PATIENCE) == 0
        assert termios.tcgetattr(chat.slave) == before


def test_keys_typed_during_an_answer_wait_for_the_next_prompt(endless: Path, state: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with Chatting(state, "-m", endless, "-c", 0, "--session", path) as chat:
        chat.press(b"go\r")
        chat.wait_for("tick", times=50)
        chat.press(b"typed ahead")
        chat.wait_for("tick", times=300)
        assert b"typed" not in chat.received
        chat.press(CTRL_C)
        chat.see("> typed ahead")
        assert chat.screen.display[chat.screen.cursor.y].startswith("> typed ahead")


def test_an_editor_changes_the_last_question(greeter: Path, state: Path, tmp_path: Path) -> None:
    path, editor = tmp_path / "s.json", tmp_path / "my editor"
    editor.write_text('#!/bin/sh\necho "was $(cat "$1")" >"$1"\n')
    editor.chmod(0o755)
    with Chatting(state, "-m", greeter, "--session", path, environment={"VISUAL": f"'{editor}'"}) as chat:
        chat.enter("one")
        chat.enter("two", times=2)
        chat.enter("/edit", times=3)
        assert chat.leave() == 0
    assert messages(path) == ["one", "hello there", "was two", "hello there"]


def test_an_editor_that_fails_or_changes_nothing_asks_nothing(greeter: Path, state: Path, tmp_path: Path) -> None:
    path, editor = tmp_path / "s.json", tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\n[ -e "{tmp_path}/fail" ] && exit 3\ntrue\n')
    editor.chmod(0o755)
    with Chatting(state, "-m", greeter, "--session", path, environment={"EDITOR": str(editor)}) as chat:
        chat.enter("one")
        chat.enter("/edit", awaiting="nothing has changed, so nothing is asked")
        (tmp_path / "fail").touch()
        chat.enter("/edit", awaiting="ended with 3")
        assert chat.leave() == 0
    assert messages(path) == ["one", "hello there"]


def test_without_an_editor_the_last_question_comes_back_into_the_line(
    greeter: Path, state: Path, tmp_path: Path
) -> None:
    path = tmp_path / "s.json"
    with Chatting(state, "-m", greeter, "--session", path) as chat:
        chat.enter("one")
        chat.enter("/edit", awaiting="> one", times=2)
        chat.press(b" more\r")
        chat.see("tokens/s", times=2)
        assert chat.leave() == 0
    assert messages(path) == ["one more", "hello there"]


def test_thoughts_are_dim_where_there_are_colours(speaker: Path, state: Path) -> None:
    thinker = says(["<think>", "why</th", "ink>", "\nsaid"], speaker.parent / "thinker.gguf")
    with Chatting(state, "-m", thinker) as chat:
        chat.enter("x")
        assert chat.leave() == 0
        assert b"\x1b[2m<think>" in chat.received
        assert chat.lines()[3:5] == ["<think>why</think>", "said"]


def test_tokens_are_coloured_when_that_is_switched_on(greeter: Path, state: Path) -> None:
    with Chatting(state, "-m", greeter, "-d", greeter) as chat:
        chat.enter("x")
        assert b"\x1b[32mhello" not in chat.received
        chat.press(b"/set color-tokens on\r")
        chat.enter("x", times=2)
        assert chat.leave() == 0
        assert b"\x1b[32mhello \x1b[0m" in chat.received


def test_a_file_gets_the_answers_alone_while_the_prompt_is_on_the_terminal(
    greeter: Path, state: Path, tmp_path: Path
) -> None:
    with (tmp_path / "answers").open("wb") as file, Chatting(state, "-m", greeter, stdout=file) as chat:
        chat.enter("x")
        chat.enter("/help", awaiting="Alt-Enter")
        assert chat.leave() == 0
    assert (tmp_path / "answers").read_bytes() == b"hello there\n"


def test_piped_lines_are_answered_on_a_terminal_without_a_prompt(greeter: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"hi\n")
    os.close(writing)
    arguments = ["chat", "--threads", "1", "-k", "2", "-m", greeter, "-q"]
    with PtyProcess(arguments, stdin=reading) as process:
        assert process.wait() == 0
        assert process.lines() == ["hello there"]
    os.close(reading)


def test_a_terminal_that_can_do_nothing_can_chat(greeter: Path, state: Path) -> None:
    with Chatting(state, "-m", greeter, environment={"TERM": "dumb"}) as chat:
        chat.enter("x")
        assert chat.leave() == 0
        assert "hello there" in chat.lines()


def test_a_session_file_that_is_damaged_meanwhile_is_left_alone(greeter: Path, state: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    with Chatting(state, "-m", greeter, "--session", path, columns=200) as chat:
        chat.enter("x")
        chat.see("\n>", times=2)
        path.write_text("somebody else's")
        chat.enter("y", awaiting="is not a specdec session")
        assert chat.leave() == 0
    assert path.read_text() == "somebody else's"


def test_a_question_that_is_refused_comes_back_into_the_line(greeter: Path, state: Path) -> None:
    with Chatting(state, "-m", greeter, "-c", 64) as chat:
        chat.enter("x" * 70, awaiting="answer included")
        chat.see("> " + "x" * 70, times=2)
        chat.press(CTRL_C)
        chat.enter("y")
        assert chat.leave() == 0
