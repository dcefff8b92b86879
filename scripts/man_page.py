"""The man page, made from the command line's own help.

    python -m scripts.man_page > docs/specdec.1

A test holds docs/specdec.1 equal to what this prints.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, Final

import typer
from rich.text import Text

from specdec_cli.cli import app

PROGRAM: Final = "specdec"
EXIT_CODE: Final = re.compile(r"(\d+) ([^·]+)")
FILES: Final = {
    "~/.config/specdec/models.toml": "Your own pairs, and which one is the default.",
    "~/.local/share/specdec/models": "Model files that were fetched.",
    "~/.cache/specdec/costs.json": "How long passes take on this machine.",
    "~/.local/state/specdec/chat_history": "What was typed in chats.",
}
ENVIRONMENT: Final = {
    "NO_COLOR": "No colours.",
    "HF_TOKEN, HF_ENDPOINT": "For specdec models pull.",
    "VISUAL, EDITOR": "What /edit of a chat opens.",
    "XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME, XDG_STATE_HOME": "Where the files below are, on Linux.",
}


def main() -> None:
    """Write the page to stdout."""
    sys.stdout.write(to_page(typer.main.get_command(app)))


def to_page(command: Any) -> str:
    """The page of the program whose top `command` this is."""
    context = command.make_context(PROGRAM, [], resilient_parsing=True)
    lines = [f".TH {PROGRAM.upper()} 1", ".SH NAME", f"{PROGRAM} \\- {_escaped(_first_line(command))}"]
    lines += [".SH SYNOPSIS", f".B {PROGRAM}", "COMMAND [OPTIONS] [ARGUMENTS]", ".SH DESCRIPTION"]
    lines += [_escaped(_plain(command.help)), ".PP", f"Try: {PROGRAM} generate \\(dqWhy is the sky blue?\\(dq"]
    lines += [".SH OPTIONS", *_options(command, context), ".SH COMMANDS"]
    for name in command.list_commands(context):
        lines += _command(command.commands[name], f"{PROGRAM} {name}", context)
    lines += [".SH EXIT STATUS", *_pairs(dict(EXIT_CODE.findall(_plain(command.epilog))))]
    lines += [".SH ENVIRONMENT", *_pairs(ENVIRONMENT), ".SH FILES", *_pairs(FILES)]
    return "\n".join(lines) + "\n"


def _command(command: Any, path: str, parent: Any) -> Iterator[str]:
    """A command, or all commands of a group."""
    context = type(parent)(command, info_name=path, parent=None)
    if hasattr(command, "commands"):
        for name in command.list_commands(context):
            yield from _command(command.commands[name], f"{path} {name}", context)
        return
    arguments = " ".join(_metavar(each) for each in command.params if each.param_type_name == "argument")
    yield f".SS {_escaped(path)} {_escaped(arguments)}".rstrip()
    for index, paragraph in enumerate(re.split(r"\n\s*\n", _plain(command.help))):
        yield from [".PP"] if index else []
        yield _escaped(" ".join(paragraph.split()))
    yield from _options(command, context)


def _options(command: Any, context: Any) -> Iterator[str]:
    """Arguments and options, each with its help."""
    for each in command.params:
        if each.hidden or not each.help:
            continue
        name, text = each.get_help_record(context)
        if each.param_type_name == "argument":
            name = _metavar(each)
        yield ".TP"
        yield f"\\fB{_escaped(name.replace('<bool>', '').strip())}\\fR"
        yield _escaped(" ".join(_plain(text).split()))


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _pairs(described: dict[str, str]) -> Iterator[str]:
    for name, text in described.items():
        yield from (".TP", f"\\fB{_escaped(name)}\\fR", _escaped(text.strip()))


def _first_line(command: Any) -> str:
    return _plain(command.help).splitlines()[0].rstrip(".")


def _plain(text: str | None) -> str:
    """Help without the markup that rich shows it with."""
    return Text.from_markup(text or "").plain


def _escaped(text: str) -> str:
    """Text that roff shows as it is: a dot or quote at the start of a line would be a command."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.MULTILINE)


if __name__ == "__main__":
    main()
