"""How work that takes hours shows that it goes on: a live line, or in a log a line now and then."""

from __future__ import annotations

import time
from typing import Final

from specdec_cli.status import StatusLine

SECONDS_BETWEEN: Final = 600.0


class Pulse:
    """Shows how far something is on `status`."""

    def __init__(self, status: StatusLine) -> None:
        self._status = status
        self._told = time.monotonic()

    def show(self, text: str) -> None:
        """Say `text`, unless nobody watches and something was said lately."""
        if self._status.visible:
            self._status.show_loading(text)
        elif time.monotonic() - self._told >= SECONDS_BETWEEN:
            self._told = time.monotonic()
            self._status.notice(text)
