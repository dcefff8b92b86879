"""What a typed line is: a command, or text for the model. Knows no terminal and no model."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from specdec_cli.errors import UsageError

Actor = TypeVar("Actor")

WORD: Final = re.compile(r"/([A-Za-z?][\w-]*)(?:\s+(.*))?", re.DOTALL)
"""A first word without a further slash or a dot in it, and the rest."""
SAID: Final = re.compile("//[^\\W\\d_]")


@dataclass(frozen=True, slots=True)
class Command(Generic[Actor]):
    """One row of the table that dispatches, completes and prints the help.

    `argument` is how the help writes what follows the name: "" if nothing may, in brackets if nothing has to.
    It may have several `lines`.
    """

    name: str
    argument: str
    help: str
    act: Callable[[Actor, str], Any]
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Call(Generic[Actor]):
    """A command with what was typed after it."""

    command: Command[Actor]
    argument: str


def parse(line: str, commands: Sequence[Command[Actor]]) -> Call[Actor] | str:
    """What `line` asks for, or the text that it says. A second slash before its first word says a line that has one.

    A path is text: a word with a slash or a dot in it, or one that exists. So are several lines, say of a program,
    unless a command takes them.

    Raises:
        UsageError: there is no such command, or it has too much or too little after its name.
    """
    if SAID.match(line) and "\n" not in line:
        return line[1:]
    match = WORD.fullmatch(line.rstrip())
    if match is None:
        return line
    word, argument = match[1].lower(), match[2] or ""
    known = {command.name: command for command in commands}
    if ("\n" in match[0] and not (word in known and known[word].lines)) or _is_path(word, match[1], known):
        return line
    if word not in known:
        raise UsageError(f"no command /{match[1]}", hint=_advice(word, list(known)))
    _check(known[word], argument)
    return Call(known[word], argument)


def _is_path(word: str, spelled: str, known: Collection[str]) -> bool:
    return word not in known and Path(f"/{spelled}").exists()


def _advice(word: str, known: list[str]) -> str:
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"{f'did you mean /{near[0]}?' if near else '/help lists them;'} //{word} … says a line with a slash"


def _check(command: Command[Any], argument: str) -> None:
    name = command.name
    if argument and not command.argument:
        raise UsageError(f"/{name} takes nothing after it", hint=f"//{name} … says it to the model")
    if not argument and command.argument and not command.argument.startswith("["):
        raise UsageError(f"/{name} needs {command.argument}", hint=f"/{name}: {command.help}")


def to_path(argument: str) -> Path:
    """The file that is named after a command: the whole rest of the line, with or without quotes."""
    if len(argument) > 1 and argument[0] == argument[-1] and argument[0] in "\"'":
        argument = argument[1:-1]
    return Path(argument).expanduser()
