"""Which lines are commands, which are text, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from specdec_cli.chat.actions import COMMANDS
from specdec_cli.chat.slash import Call, Command, parse, to_path
from specdec_cli.errors import UsageError


def nothing(*_: Any) -> None:
    """What the commands of these tests do."""


TABLE: Final = (
    Command("reset", "", "Forget.", nothing),
    Command("read", "FILE", "Read.", nothing),
    Command("set", "[OPTION VALUE]", "Set.", nothing),
    Command("system", "[TEXT]", "System.", nothing, lines=True),
)


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        "",
        "/usr/bin/env is what?",
        "/etc/passwd",
        "/tmp is full",
        "/",
        "/ no word",
        "/5 of them",
        "/*comment*/",
        "/file.txt holds what?",
        " /reset",
        "a /reset",
        "[bold] [/INST] :smile:",
        "// a comment",
        "//",
        "//comment\nint x;",
        "/reset\nint x;",
        "/rest\nint x;",
        "/set a\nb",
    ],
)
def test_text_stays_text_to_the_letter(line: str) -> None:
    assert parse(line, TABLE) == line


@pytest.mark.parametrize(("line", "text"), [("//reset", "/reset"), ("//x y/z", "/x y/z"), ("//é", "/é")])
def test_two_slashes_say_a_line_that_begins_with_one(line: str, text: str) -> None:
    assert parse(line, TABLE) == text


@pytest.mark.parametrize(
    ("line", "name", "argument"),
    [
        ("/reset", "reset", ""),
        ("/reset  ", "reset", ""),
        ("/RESET", "reset", ""),
        ("/read a b.txt", "read", "a b.txt"),
        ("/read   x\n", "read", "x"),
        ("/set", "set", ""),
        ("/set stop [/b]", "set", "stop [/b]"),
        ("/system a\nb", "system", "a\nb"),
    ],
)
def test_a_command_is_called_with_what_follows_its_name(line: str, name: str, argument: str) -> None:
    call = parse(line, TABLE)
    assert isinstance(call, Call)
    assert (call.command.name, call.argument) == (name, argument)


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        ("/rest", "no command /rest", "did you mean /reset?"),
        ("/sett x", "no command /sett", "did you mean /set?"),
        ("/frobnicate 5", "no command /frobnicate", "/help lists them"),
        ("/reset all", "/reset takes nothing after it", "//reset … says it"),
        ("/read", "/read needs FILE", "/read: Read."),
    ],
)
def test_a_wrong_command_is_refused_with_the_way_out(line: str, message: str, advice: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse(line, TABLE)
    assert refusal.value.message == message
    assert refusal.value.hint.startswith(advice)


def test_the_table_holds_each_command_once_with_a_sentence_about_it() -> None:
    names = [command.name for command in COMMANDS]
    assert names == "help exit reset regen undo edit system read set stats draft save load".split()  # noqa: SIM905
    assert all(command.help.endswith(".") for command in COMMANDS)


@pytest.mark.parametrize("typed", ["a b.txt", '"a b.txt"', "'a b.txt'"])
def test_a_file_may_have_blanks_and_quotes_around_it(typed: str) -> None:
    assert to_path(typed) == Path("a b.txt")


def test_a_tilde_is_home() -> None:
    assert to_path("~/x") == Path.home() / "x"
