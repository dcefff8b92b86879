"""Thoughts and answers of models that think before they speak: told apart by tags, wherever tokens split these.

A thought begins where nothing was said yet, or right after another thought; anywhere else a tag is text, so that
an answer about tags loses nothing. A thought that is never closed is a thought to the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from specdec_cli.core.text import Segment

Mark = TypeVar("Mark")


@dataclass(frozen=True, slots=True)
class Tags:
    """What stands before and after a thought."""

    opening: str
    closing: str


THINK: Final = Tags("<think>", "</think>")
KNOWN: Final = (
    THINK,
    Tags("<thinking>", "</thinking>"),
    Tags("<thought>", "</thought>"),
    Tags("<seed:think>", "</seed:think>"),
    Tags("[THINK]", "[/THINK]"),
    Tags("◁think▷", "◁/think▷"),
    Tags("<|START_THINKING|>", "<|END_THINKING|>"),
    Tags("<|inner_prefix|>", "<|inner_suffix|>"),
    Tags("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    Tags("<|channel|>final<|message|>", ""),
)
"""Tags of models in use. Those count whose opening one the chat template holds, and `THINK`. The last is no thought,
but a mark to be left out as one is."""


def find_tags(template: str) -> list[Tags]:
    """The tags that a model with this chat template may use."""
    return [tags for tags in KNOWN if tags is THINK or tags.opening in template]


@dataclass(frozen=True, slots=True)
class Part(Generic[Mark]):
    """A run of text that is either thought or said; tags and the blanks around them belong to the thought."""

    segment: Segment[Mark]
    thought: bool


class ThoughtStream(Generic[Mark]):
    """Feed it an answer; it gives back all of its text, in order and parted. `inside`: the prompt opened a thought."""

    def __init__(self, tags: Sequence[Tags], *, inside: Tags | None = None) -> None:
        self._tags = tags
        self._inside = inside
        self._begun = False
        self._thought_before = False
        self._held: list[Segment[Mark]] = []

    @property
    def open(self) -> bool:
        """Whether the text so far ends inside a thought."""
        return self._inside is not None

    def feed(self, segments: Iterable[Segment[Mark]]) -> list[Part[Mark]]:
        """Add text; the parts that are now certain."""
        parts: list[Part[Mark]] = []
        for segment in segments:
            self._held.append(segment)
            while (found := self._step()) is not None:
                parts += found
        return parts

    def finish(self) -> list[Part[Mark]]:
        """No more text will come: what was held back is no tag."""
        return self._take(len(self._text), thought=self.open)

    @property
    def _text(self) -> str:
        return "".join(segment.text for segment in self._held)

    def _step(self) -> list[Part[Mark]] | None:
        """The next parts, None if what is held may still become something else."""
        text = self._text
        if not text:
            return None
        if self._inside is not None:
            return self._think(text, self._inside.closing)
        return self._take(len(text), thought=False) if self._begun else self._begin(text)

    def _think(self, text: str, closing: str) -> list[Part[Mark]] | None:
        at = text.find(closing)
        if at >= 0:
            self._inside, self._thought_before = None, True
            return self._take(at + len(closing), thought=True)
        return self._take(len(text) - _unsure(text, closing), thought=True) or None

    def _begin(self, text: str) -> list[Part[Mark]] | None:
        """What comes before the first word: blanks, a tag, or the word itself."""
        word = text.lstrip()
        blanks = len(text) - len(word)
        for tags in self._tags:
            if word.startswith(tags.opening):
                self._inside = tags
                return self._take(blanks + len(tags.opening), thought=True)
        if any(tags.opening.startswith(word) for tags in self._tags):  # so do blanks alone
            return None
        self._begun = True
        return self._take(blanks, thought=self._thought_before) + self._take(len(word), thought=False)

    def _take(self, count: int, *, thought: bool) -> list[Part[Mark]]:
        """The first `count` characters of what is held."""
        parts: list[Part[Mark]] = []
        while count > 0:
            first = self._held.pop(0)
            parts.append(Part(Segment(first.text[:count], first.mark), thought))
            if first.text[count:]:
                self._held.insert(0, Segment(first.text[count:], first.mark))
            count -= len(first.text)
        return parts


def _unsure(text: str, tag: str) -> int:
    """Length of the longest end of `text` that is the beginning of `tag`."""
    return next((length for length in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:length])), 0)
