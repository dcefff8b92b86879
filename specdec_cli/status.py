"""One live line that never disturbs the text: gone before the next character is written, back right after it.

Where text and status share a terminal, the status stands in the row below the cursor. The row is made by
moving down and up again (which scrolls at the bottom), and erased together with all below the cursor before
more text comes, so that it can never scroll away. Terminals forget that a line is full when the cursor is
moved; the line is therefore only drawn where the cursor is certainly not waiting at the right margin. It is
cut to the window, and never wraps even if the window shrinks at that moment.
"""

from __future__ import annotations

import math
import os
import stat
import time
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from rich.cells import cell_len, set_cell_size

from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind
from specdec_cli.terminal import Terminal

INDEX, REVERSE_INDEX, SAVE, RESTORE = "\x1bD", "\x1bM", "\x1b7", "\x1b8"
DOWN, ERASE_LINE, ERASE_BELOW = "\x1b[B", "\x1b[K", "\x1b[J"
ROW_BELOW = INDEX + REVERSE_INDEX + SAVE + DOWN + "\r"
"""To the row below, made if there is none; RESTORE leads back. tmux scrolls what is erased from the top corner."""
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"
DIM, PLAIN = "\x1b[2m", "\x1b[0m"
SECONDS_BETWEEN: Final = 0.1
LONG_AGO: Final = -math.inf
SMALLEST: Final = (20, 4)
"""Columns and rows below which there is no room for a status."""


class StatusLine:
    """The status of one command on `terminal`. All that shares its screen, text and notices, goes through it too.

    A `hidden` one shows no status, as wherever no line can be rewritten.
    """

    def __init__(self, terminal: Terminal, *, hidden: bool = False) -> None:
        self._terminal = terminal
        self._below = terminal.shows_text and _same_terminal(terminal)
        self._loads = terminal.moves_cursor and not hidden
        self._piped = terminal.shows_messages and not terminal.shows_text and not _is_file(terminal)
        self._usable = self._loads and (self._below or not (terminal.shows_text or self._piped))
        self._cursor = _cursor_of(terminal)
        self._shown: Literal["", "below", "in place"] = ""
        self._parts: Sequence[str] = ()
        self._changed = LONG_AGO
        self._ending = ""
        self._notices: list[str] = []

    @property
    def visible(self) -> bool:
        """Whether `show` can show anything here."""
        return self._usable

    def show_loading(self, text: str) -> None:
        """Show `text` while there is no answer yet."""
        if self._loads:
            self._draw_in_place([text])

    def show(self, parts: Sequence[str]) -> None:
        """Show as many of `parts` as fit, unless they were changed a moment ago, or could do harm where the text is."""
        now = time.monotonic()
        if now - self._changed >= SECONDS_BETWEEN:
            self._changed, self._parts = now, parts
        elif self._shown:
            return
        if self._usable and self._below:
            self._draw_below(self._parts)
        elif self._usable:
            self._draw_in_place(self._parts)

    def write(self, segments: Iterable[Segment[Kind]], *, by_kind: bool = False, dim: bool = False) -> None:
        """Put text on stdout; see `Terminal.write`."""
        self._clear()
        shown = self._terminal.write(segments, by_kind=by_kind, dim=dim)
        self._ending = shown[-1:] or self._ending
        if self._below:
            self._cursor.advance(shown, self._size()[0])

    def notice(self, text: str) -> None:
        """Tell the user something; after the answer if that has begun, since it may end on the same screen."""
        if self._ending:
            self._notices.append(text)
        else:
            self._clear()
            self._terminal.notice(text)

    def close(self, *, interrupted: bool = False) -> None:
        """Leave the screen ready for more lines, also of another answer. After Ctrl-C a ^C may stand at the cursor."""
        self._clear()
        if self._terminal.shows_text and (interrupted or self._ending not in ("", "\n")):
            self._terminal.write_text("\n")
        elif self._piped and self._ending not in ("", "\n"):
            self._terminal.write_message("\n")  # what reads the pipe may write to this very screen
        for text in self._notices:
            self._terminal.notice(text)
        self._ending, self._notices, self._changed = "", [], LONG_AGO
        self._cursor = _cursor_of(self._terminal)

    def _clear(self) -> None:
        if self._shown:
            # The rest of the cursor's own row too: resized, tmux may have left the cursor in a row of the status.
            below = ERASE_LINE + ROW_BELOW + ERASE_BELOW + RESTORE
            self._terminal.write_message(below if self._shown == "below" else "\r" + ERASE_LINE)
            self._shown = ""

    def _draw_in_place(self, parts: Sequence[str]) -> None:
        self._terminal.write_message("\r" + NO_WRAP + self._styled(parts) + ERASE_LINE + WRAP)
        self._shown = "in place"

    def _draw_below(self, parts: Sequence[str]) -> None:
        columns, rows = self._size()
        if columns < SMALLEST[0] or rows < SMALLEST[1] or not self._cursor.safe(columns):
            return
        if self._shown == "in place":
            self._clear()
        line = self._styled(parts) + ERASE_LINE
        self._terminal.write_message(ROW_BELOW + NO_WRAP + line + WRAP + RESTORE)
        self._shown = "below"

    def _styled(self, parts: Sequence[str]) -> str:
        text = fit(parts, max(self._size()[0] - 1, 1))
        return text if self._terminal.environment.get("NO_COLOR") else DIM + text + PLAIN

    def _size(self) -> tuple[int, int]:
        try:
            return os.get_terminal_size(self._terminal.stderr.fileno())
        except OSError:
            return 0, 0


def fit(parts: Sequence[str], room: int) -> str:
    """The first of `parts` that fit together into `room` cells; the very first is cut if it has to be."""
    text = set_cell_size(parts[0], room) if cell_len(parts[0]) > room else parts[0]
    for part in parts[1:]:
        longer = f"{text} · {part}"
        if cell_len(longer) > room:
            break
        text = longer
    return text


class Cursor:
    """Where the text cursor is: its column, and by how many cells a terminal may see that differently.

    `east_asian` terminals may show Greek, Cyrillic and symbols two cells wide.
    """

    def __init__(self, *, east_asian: bool) -> None:
        self._east_asian = east_asian
        self._columns = 0
        self._column = 0
        self._doubt = 0
        self._open = False
        self._lost = False

    def advance(self, text: str, columns: int) -> None:
        """Follow `text` on a terminal that is `columns` wide."""
        self._resize(columns)
        for character in text:
            if character == "\n":
                self._column, self._doubt, self._lost = 0, 0, False
            elif character == "\t":
                self._lost = self._lost or self._column // 8 * 8 + 8 >= columns
                self._column = self._column // 8 * 8 + 8
            else:
                width = cell_len(character)
                self._column = width if self._column + width > columns else self._column + width
                self._doubt += self._doubtful(character)
        self._open = bool(text) and _joins(text[-1])

    def safe(self, columns: int) -> bool:
        """Whether the cursor is certainly not waiting at the right margin, nor in the middle of a joined character."""
        self._resize(columns)
        below, above = self._column - self._doubt, self._column + self._doubt
        return not self._lost and not self._open and above < columns and (below > 0 or self._doubt == 0)

    def _resize(self, columns: int) -> None:
        """A terminal may reflow its lines when it is resized: the column is unknown until the next one."""
        self._lost = self._lost or (self._columns not in (0, columns) and self._column > 0)
        self._columns = columns

    def _doubtful(self, character: str) -> bool:
        """Whether terminals disagree about the width of `character`."""
        return _joins(character) or (self._east_asian and unicodedata.east_asian_width(character) == "A")


def _joins(character: str) -> bool:
    """Whether `character` may form one with its neighbours: marks, joiners and emoji."""
    return not character.isascii() and (unicodedata.category(character)[0] in "MC" or ord(character) >= 0x1F000)


def _cursor_of(terminal: Terminal) -> Cursor:
    """One at the beginning of a line."""
    return Cursor(east_asian=_language(terminal) in ("ja", "ko", "zh"))


def _language(terminal: Terminal) -> str:
    environment = terminal.environment
    return (environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or "")[:2]


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
