"""Token bytes become text: whole characters only, held back while a stop string might be starting.

A `TextStream` is fed one token at a time and answers with the text that can be shown for certain. Bytes
that are not UTF-8, or are cut off at the end, become one U+FFFD each.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Mark = TypeVar("Mark")


@dataclass(frozen=True, slots=True)
class Segment(Generic[Mark]):
    """A run of text and the mark of the token that completed it."""

    text: str
    mark: Mark


class TextStream(Generic[Mark]):
    """Text of one answer. `stopped` is true once a stop string appeared; the text ends just before it."""

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = tuple(stops)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held: list[Segment[Mark]] = []
        self.stopped = False

    def feed(self, piece: bytes, mark: Mark) -> list[Segment[Mark]]:
        """Add the bytes of one token; the segments that are now certain."""
        return self._take(self._decoder.decode(piece), mark)

    def finish(self, mark: Mark) -> list[Segment[Mark]]:
        """No more tokens will come: what was held back is text after all, unless a stop string appeared."""
        released = self._take(self._decoder.decode(b"", final=True), mark)
        if not self.stopped:
            released += self._held
        self._held = []
        return released

    def _take(self, text: str, mark: Mark) -> list[Segment[Mark]]:
        if not text:
            return []
        self._held.append(Segment(text, mark))
        joined = "".join(segment.text for segment in self._held)
        found = [at for at in (joined.find(stop) for stop in self._stops) if at >= 0]
        if found:
            self.stopped = True
            return self._release(min(found))
        return self._release(len(joined) - _possible_start(joined, self._stops))

    def _release(self, count: int) -> list[Segment[Mark]]:
        """Take the first `count` characters out of what is held."""
        released: list[Segment[Mark]] = []
        while count > 0:
            first = self._held.pop(0)
            released.append(Segment(first.text[:count], first.mark))
            if first.text[count:]:
                self._held.insert(0, Segment(first.text[count:], first.mark))
            count -= len(first.text)
        return released


def _possible_start(text: str, stops: Sequence[str]) -> int:
    """Length of the longest end of `text` that is the beginning of one of `stops`."""
    longest = max((len(stop) - 1 for stop in stops), default=0)
    for length in range(min(longest, len(text)), 0, -1):
        if any(stop.startswith(text[-length:]) for stop in stops):
            return length
    return 0
