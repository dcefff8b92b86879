"""A person at the keys: a prompt with history across runs, completion, and several lines at a time."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completer
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output

from specdec_cli.terminal import Terminal

PROMPT: Final = "> "
CONTINUED: Final = "· "
MOST_OF_A_MENU: Final = 8


class KeyReader:
    """Keys at a prompt on stderr, or on stdout if only that is a terminal: Enter sends, Alt-Enter begins a new line."""

    by_hand = True

    def __init__(self, terminal: Terminal, completer: Completer) -> None:
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            multiline=True,
            prompt_continuation=CONTINUED,
            history=open_history(history_path()),
            completer=completer,
            complete_while_typing=Condition(lambda: get_app().current_buffer.text.startswith("/")),
            key_bindings=_keys(),
            enable_open_in_editor=True,
            enable_suspend=True,
            output=_output(terminal),
        )

    def read(self, draft: str = "") -> str:
        """See `Reader`. Ctrl-C gives up a line that has begun, which history keeps; at an empty one it is raised."""
        self._session.reserve_space_for_menu = min(MOST_OF_A_MENU, self._session.output.get_size().rows // 3)
        while True:
            try:
                return whole(self._session.prompt(default=draft))
            except KeyboardInterrupt:
                if not (given_up := self._session.default_buffer.text):
                    raise
                self._session.history.append_string(given_up)
                draft = ""


def _output(terminal: Terminal) -> Output:
    """Without questions about the cursor, whose answers would arrive among the keys while a model answers."""
    output = create_output(terminal.stderr if terminal.shows_messages else sys.stdout)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def whole(text: str) -> str:
    """`text` without the halves of characters that a terminal in another encoding may send."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def history_path() -> Path:
    """Where what was typed is kept across runs."""
    return platformdirs.user_state_path("specdec", appauthor=False) / "chat_history"


def open_history(path: Path) -> History:
    """The history in `path`, readable by its owner alone; one that is forgotten where there is no place for a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return KeptHistory(path)


class KeptHistory(FileHistory):
    """A file of what was typed. A disk that fills up costs the history, not the chat."""

    def store_string(self, string: str) -> None:
        """Add `string` as the latest."""
        with suppress(OSError):
            super().store_string(whole(string))
