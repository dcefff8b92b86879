"""The list of pairs: a table as wide as the window of a terminal, or uncut for a pipe."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from specdec_cli.pairs.entries import Entry
from specdec_cli.pairs.words import ANSWERS, UNKNOWN, here_in_words, size_in_words
from specdec_cli.terminal import ONE_LINE, Terminal

WIDTH_IN_A_PIPE: Final = 10_000
"""Nothing is cut there: a line is as long as it has to be."""
TITLES: Final = ("NAME", "TARGET", "DRAFT", "SIZE", "HERE", "FITS", "LICENCE")
FILES: Final = ("TARGET", "DRAFT")
"""The columns that give way in a narrow window, the last one first."""
SHORTEST: Final = 16
GAP: Final = 2


def to_listing(entries: Sequence[Entry], terminal: Terminal) -> str:
    """All pairs, a line each, for stdout of `terminal`; the default has a star."""
    console = Console(
        file=io.StringIO(),
        width=None if terminal.shows_text else WIDTH_IN_A_PIPE,
        force_terminal=terminal.colors_text,
        no_color=not terminal.colors_text,
        markup=False,
        emoji=False,
        highlight=False,
    )
    rows = [_row(entry) for entry in entries]
    with console.capture() as captured:
        console.print(_to_table(rows, console.width))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _to_table(rows: Sequence[dict[str, str]], width: int) -> Table:
    widths = {title: max(map(cell_len, [title, *(row[title] for row in rows)])) for title in TITLES}
    room = width - sum(widths[title] + GAP for title in TITLES if title not in FILES)
    shown = [title for title in FILES if room >= sum(min(widths[each], SHORTEST) + GAP for each in FILES)] or FILES[:1]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for title in TITLES:
        if title in FILES:
            if title in shown:
                table.add_column(title, overflow="ellipsis", no_wrap=True, max_width=max(room // len(shown) - GAP, 1))
        else:
            table.add_column(title, justify="right" if title == "SIZE" else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(row[title] for title in TITLES if title not in FILES or title in shown))
    return table


def _row(entry: Entry) -> dict[str, str]:
    cells = (
        f"{entry.name}{' *' if entry.default else ''}",
        entry.target.name.removesuffix(".gguf"),
        ", ".join(each.removesuffix(".gguf") for each in entry.drafters) or "none",
        size_in_words(entry.size),
        here_in_words(entry),
        ANSWERS[entry.fits],
        entry.target.licence or UNKNOWN,
    )
    return {title: cell.translate(ONE_LINE) for title, cell in zip(TITLES, cells, strict=True)}
