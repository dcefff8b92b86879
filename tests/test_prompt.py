"""The one rule for arguments, files and standard input."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from specdec_cli.errors import UsageError
from specdec_cli.prompt import read_prompt
from specdec_cli.terminal import Terminal


class Keyboard(io.BytesIO):
    def isatty(self) -> bool:
        return True


def terminal(stdin: io.BufferedIOBase) -> Terminal:
    return Terminal(stdin, io.BytesIO(), io.StringIO(), {})  # type: ignore[arg-type]


def ask(argument: str | None = None, file: str | None = None, *, piped: bytes = b"") -> str:
    return read_prompt(argument, file, terminal(io.BytesIO(piped)))


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\nb", "a\nb"),
        ("a\nb\n", "a\nb"),
        ("a\nb\n\n", "a\nb\n"),
        ("a\r\nb\r\n", "a\nb"),
        ("\ufeffa\r\nb", "a\nb"),
        ("a\rb", "a\rb"),
        ("  a  \n", "  a  "),
        ("", ""),
        ("\n", ""),
        ("\n\n", "\n"),
        ("[/INST] :smile: [bold]", "[/INST] :smile: [bold]"),
    ],
)
def test_a_file_and_standard_input_are_read_by_the_same_rule(raw: str, clean: str, tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_bytes(raw.encode())
    assert ask(file=str(path), piped=b"not read") == clean
    assert ask(piped=raw.encode()) == clean
    assert ask(file="-", piped=raw.encode()) == clean


def test_piped_material_comes_before_the_question() -> None:
    assert ask("What went wrong?", piped=b"line 1\nline 2\n") == "line 1\nline 2\n\nWhat went wrong?"


def test_a_file_comes_before_the_question(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("material\n")
    assert ask("Question?", str(tmp_path / "file")) == "material\n\nQuestion?"


def test_an_argument_alone_is_taken_as_it_is() -> None:
    assert ask("\ufeffa\r\n\n") == "\ufeffa\r\n\n"


def test_a_keyboard_is_not_waited_for_when_there_is_an_argument() -> None:
    assert read_prompt("question", None, terminal(Keyboard(b"typed"))) == "question"


def test_a_dash_reads_the_keyboard() -> None:
    assert read_prompt(None, "-", terminal(Keyboard(b"typed\n"))) == "typed"


def test_a_keyboard_without_a_prompt_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="there is no prompt") as caught:
        read_prompt(None, None, terminal(Keyboard()))
    assert "specdec generate" in caught.value.hint


def test_a_pipe_that_stays_silent_is_a_usage_error_and_not_a_hang() -> None:
    reader, writer = os.pipe()
    before = set(threading.enumerate())
    with os.fdopen(reader, "rb") as stdin:
        with os.fdopen(writer, "wb"), pytest.raises(UsageError, match=r"said nothing for 0\.05 seconds") as caught:
            read_prompt("question", None, terminal(stdin), patience=0.05)
        for thread in set(threading.enumerate()) - before:
            thread.join()
    assert "</dev/null" in caught.value.hint


def test_a_pipe_that_has_spoken_is_read_to_its_end() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"first ")
    with os.fdopen(reader, "rb") as stdin, os.fdopen(writer, "wb") as late:
        late.write(b"last")
        late.close()
        assert read_prompt("question", None, terminal(stdin), patience=60) == "first last\n\nquestion"


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: ") as caught:
        ask(file=str(tmp_path / name))
    assert str(tmp_path / name) in caught.value.message


def test_bytes_that_are_not_utf_8_are_replaced_with_a_notice() -> None:
    console = Terminal(io.BytesIO(b"a\xff\xfeb \xef\xbf\xbd"), io.BytesIO(), io.StringIO(), {})
    assert read_prompt(None, None, console) == "a\ufffd\ufffdb \ufffd"
    assert console.stderr.getvalue().endswith("was replaced by \ufffd, 2 ×\n")  # type: ignore[attr-defined]
