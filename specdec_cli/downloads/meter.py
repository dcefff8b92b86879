"""How much of a download is here, in words and as a share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LONGEST_NAME: Final = 30

Progress = Callable[[str, float | None], object]
"""Called with what goes on, and how much of all bytes is here, 0..1."""


class Meter:
    """Tells how many of all bytes are here, a thousandth of them at a time. `name` is of the file that grows now."""

    def __init__(self, total: int, tell: Progress) -> None:
        self.name = ""
        self._total = total
        self._tell = tell
        self._done = 0
        self._told = -1

    def move(self, count: int) -> None:
        """Count bytes that are here now; or that are not any more, if negative."""
        self._done += count
        thousandths = 1000 * self._done // self._total
        if thousandths != self._told:
            self._told = thousandths
            amounts = f"{self._done / 1e9:.2f} of {self._total / 1e9:.2f} GB"
            self._tell(f"{_short(self.name)} {amounts}", self._done / self._total)


def _short(name: str) -> str:
    """`name` without its middle if it leaves a line of a terminal no room for a bar; both ends tell files apart."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME // 2]}…{name[-LONGEST_NAME // 2 + 1 :]}"
