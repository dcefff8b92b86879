"""What Tab and a slash offer at the prompt: commands, settings with their words, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from specdec_cli.chat.slash import Command

FILES: Final = PathCompleter(expanduser=True)


class LineCompleter(Completer):
    """Completes lines that begin with a slash. `settings` maps each name that /set knows to the words it may have."""

    def __init__(self, commands: Sequence[Command[Any]], settings: Callable[[], dict[str, tuple[str, ...]]]) -> None:
        self._commands = commands
        self._settings = settings

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What may stand at the cursor."""
        text = document.text_before_cursor
        if not text.startswith("/"):
            return
        word, space, rest = text.partition(" ")
        if not space:
            yield from self._names(word)
        elif word == "/set":
            yield from self._words(rest)
        elif self._takes_file(word):
            yield from FILES.get_completions(Document(rest.lstrip()), complete_event)

    def _names(self, word: str) -> Iterable[Completion]:
        for command in self._commands:
            if f"/{command.name}".startswith(word):
                yield Completion(f"/{command.name}", -len(word), display_meta=command.help)

    def _words(self, rest: str) -> Iterable[Completion]:
        name, space, value = rest.partition(" ")
        settings = self._settings()
        offered = settings.get(name, ()) if space else settings
        begun = value if space else name
        return (Completion(each, -len(begun)) for each in offered if each.startswith(begun))

    def _takes_file(self, word: str) -> bool:
        return any(f"/{each.name}" == word and "FILE" in each.argument for each in self._commands)
