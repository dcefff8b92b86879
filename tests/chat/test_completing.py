"""What Tab offers, wherever the cursor is."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from specdec_cli.chat.actions import COMMANDS
from specdec_cli.chat.completing import LineCompleter

SETTINGS = {"rule": ("token", "block"), "repeat-penalty": (), "draft": ("on", "off")}


def offered(text: str) -> list[str]:
    """The line with each of the completions."""
    completions = LineCompleter(COMMANDS, lambda: SETTINGS).get_completions(Document(text), CompleteEvent())
    return [text[: len(text) + each.start_position] + each.text for each in completions]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("/re", ["/reset", "/regen", "/read"]),
        ("/set r", ["/set rule", "/set repeat-penalty"]),
        ("/set rule ", ["/set rule token", "/set rule block"]),
        ("/set rule t", ["/set rule token"]),
        ("/set nonsense x", []),
        ("/undo x", []),
        ("hello /re", []),
        ("//re", []),
        ("", []),
    ],
)
def test_commands_settings_and_their_words_are_offered(text: str, lines: list[str]) -> None:
    assert offered(text) == lines


@pytest.mark.parametrize("command", ["/read", "/save", "/load"])
def test_files_are_offered_where_a_file_goes(command: str, tmp_path: Path) -> None:
    (tmp_path / "one two.txt").touch()
    assert offered(f"{command} {tmp_path}/one") == [f"{command} {tmp_path}/one two.txt"]
