"""One live line that never disturbs the text: rewritten in place, gone before the next character is written.

Where text and status share a terminal, the status stands in the row below the cursor. The row is made by
moving down and up again (which scrolls at the bottom), and erased together with all below the cursor before
more text comes, so that it can never scroll away. Terminals forget that a line is full when the cursor is
moved; the line is therefore only drawn where the cursor is certainly not waiting at the right margin.
"""

from __future__ import annotations

import os
import stat
import time
import unicodedata
from typing import Final, Literal

from rich.cells import cell_len, set_cell_size

from specdec_cli.terminal import Terminal

INDEX, REVERSE_INDEX, SAVE, RESTORE = "\x1bD", "\x1bM", "\x1b7", "\x1b8"
DOWN, ERASE_LINE, ERASE_BELOW = "\x1b[B", "\x1b[K", "\x1b[J"
DIM, PLAIN = "\x1b[2m", "\x1b[0m"
SECONDS_BETWEEN: Final = 0.1
SMALLEST: Final = (20, 4)
"""Columns and rows below which there is no room for a status."""


class StatusLine:
    """The status of one command on `terminal`; every method does nothing where no line can be rewritten."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._below = terminal.shows_text and _same_terminal(terminal)
        self._usable = terminal.moves_cursor and (self._below or (not terminal.shows_text and _is_file(terminal)))
        self._loads = terminal.moves_cursor
        self._cursor = Cursor()
        self._shown: Literal["", "below", "in place"] = ""
        self._last = 0.0

    def show_loading(self, text: str) -> None:
        """Show `text` while there is no answer yet."""
        if self._loads:
            self._draw_in_place(text)

    def show(self, text: str) -> None:
        """Show `text` unless it was changed a moment ago or the cursor stands where it could do harm."""
        now = time.monotonic()
        if not self._usable or now - self._last < SECONDS_BETWEEN:
            return
        self._last = now
        if self._below:
            self._draw_below(text)
        else:
            self._draw_in_place(text)

    def clear(self) -> None:
        """Take the line away; call it before anything else is written to the terminal."""
        if self._shown:
            self._write(ERASE_BELOW if self._shown == "below" else "\r" + ERASE_LINE)
            self._shown = ""

    def follow(self, text: str) -> None:
        """Note that `text` was written to the terminal."""
        if self._below:
            self._cursor.advance(text, self._size()[0])

    def _draw_in_place(self, text: str) -> None:
        self._write("\r" + self._styled(text) + ERASE_LINE)
        self._shown = "in place"

    def _draw_below(self, text: str) -> None:
        columns, rows = self._size()
        if columns < SMALLEST[0] or rows < SMALLEST[1] or not self._cursor.safe(columns):
            return
        self._write(INDEX + REVERSE_INDEX + SAVE + DOWN + "\r" + self._styled(text) + ERASE_LINE + RESTORE)
        self._shown = "below"

    def _styled(self, text: str) -> str:
        room = max(self._size()[0] - 1, 1)
        text = set_cell_size(text, room) if cell_len(text) > room else text
        return text if self._terminal.environment.get("NO_COLOR") else DIM + text + PLAIN

    def _size(self) -> tuple[int, int]:
        try:
            return os.get_terminal_size(self._terminal.stderr.fileno())
        except OSError:
            return 0, 0

    def _write(self, text: str) -> None:
        self._terminal.stderr.write(text)
        self._terminal.stderr.flush()


class Cursor:
    """Where the text cursor is: its column, and by how many cells a terminal may see that differently."""

    def __init__(self) -> None:
        self._columns = 0
        self._column = 0
        self._doubt = 0
        self._lost = False

    def advance(self, text: str, columns: int) -> None:
        """Follow `text` on a terminal that is `columns` wide."""
        self._resize(columns)
        for character in text:
            if character == "\n":
                self._column, self._doubt, self._lost = 0, 0, False
            elif character == "\t":
                self._column = min(self._column // 8 * 8 + 8, max(columns - 1, 0))
            else:
                width = cell_len(character)
                self._column = width if self._column + width > columns else self._column + width
                self._doubt += _doubtful(character)

    def safe(self, columns: int) -> bool:
        """Whether the cursor is certainly not waiting at the right margin."""
        self._resize(columns)
        below, above = self._column - self._doubt, self._column + self._doubt
        return not self._lost and above < columns and (below > 0 or self._doubt == 0)

    def _resize(self, columns: int) -> None:
        """A terminal may reflow its lines when it is resized: the column is unknown until the next one."""
        self._lost = self._lost or (self._columns not in (0, columns) and self._column > 0)
        self._columns = columns


def _doubtful(character: str) -> bool:
    """Whether terminals disagree about the width of `character`."""
    if character.isascii():
        return False
    joined = unicodedata.category(character) in ("Mn", "Me", "Cf", "Co", "Cn")
    return joined or unicodedata.east_asian_width(character) == "A" or ord(character) >= 0x1F000


def _same_terminal(terminal: Terminal) -> bool:
    try:
        out, err = os.fstat(terminal.stdout.fileno()), os.fstat(terminal.stderr.fileno())
    except OSError:
        return False
    return out.st_rdev == err.st_rdev


def _is_file(terminal: Terminal) -> bool:
    """Whether stdout is a file: a pipe may end on this very terminal, where a status would mix with its text."""
    try:
        return stat.S_ISREG(os.fstat(terminal.stdout.fileno()).st_mode)
    except OSError:
        return False
