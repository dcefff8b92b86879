"""Clients as a person wants to hear of them: those that stay.

A greeting takes a moment, and some clients connect several times while they load; neither is worth a line.
"""

from __future__ import annotations

from typing import Final

WORTH_A_LINE: Final = 1.0
"""Seconds that a client has to stay."""


class Visit:
    """The client that is served now, if any. Times are in seconds, of one clock."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._told = False

    def begin(self, now: float) -> None:
        """A client has come."""
        self._since, self._told = now, False

    def due(self, now: float) -> float | None:
        """Seconds until it is worth a line; None if there is no client or it had one."""
        if self._since is None or self._told:
            return None
        return max(0.0, self._since + WORTH_A_LINE - now)

    def tell(self) -> None:
        """It had its line."""
        self._told = True

    def end(self, now: float) -> float | None:
        """The client has left: seconds that it stayed if it had a line, else None."""
        stayed = None if self._since is None or not self._told else now - self._since
        self._since, self._told = None, False
        return stayed
