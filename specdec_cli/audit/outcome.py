"""What a check of an audit is, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of the check `name`: whether it `passed`, a line or two of `words` for people, and `figures` for programs."""

    name: str
    passed: bool
    words: str
    figures: Mapping[str, Any]


class Check(Protocol):
    """One check of an audit."""

    name: str

    def work(self) -> Iterator[float]:
        """Do it piece by piece; the share that is done, after each. Whoever iterates may stop after any piece."""
        ...

    def outcome(self) -> Outcome | None:
        """What the pieces that were done come to; None before the first."""
        ...
