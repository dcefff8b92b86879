"""A picture of what the real program shows: runs specdec in a terminal of its own and writes its screen as SVG.

    python -m scripts.picture docs/images/generate.svg --columns 100 -- generate --color-tokens "Name a river."

Everything after `--` goes to specdec. Needs the test extra.
"""

from __future__ import annotations

import argparse
import re
import shlex
from io import StringIO
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.style import Style
from rich.text import Text

from tests.pty_process import PtyProcess

FONT_FACES: Final = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Fonts that would be fetched from elsewhere: the reader's own monospaced font is as good."""


def main() -> None:
    """Run specdec and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("arguments", nargs="+")
    given = parser.parse_args()
    lines = screen(given.arguments, given.columns, given.rows)
    console = Console(width=given.columns, record=True, force_terminal=True, color_system="truecolor", file=StringIO())
    command = " ".join(shlex.quote(each) if " " in each else each for each in given.arguments)
    console.print(Text(f"$ specdec {command}", style="bold"), *lines, sep="\n")
    svg = console.export_svg(title="specdec")
    given.picture.write_text(FONT_FACES.sub("", svg), "utf-8")


def screen(arguments: list[str], columns: int, rows: int) -> list[Text]:
    """The lines that `specdec` with `arguments` leaves on its terminal, with their styles."""
    with PtyProcess(arguments, columns=columns, rows=rows, environment={"COLORTERM": ""}) as process:
        process.wait()
        every = [*process.screen.history.top, *(process.screen.buffer[y] for y in range(rows))]
        lines = [line(row, columns) for row in every]
    while lines and not lines[-1].plain:
        lines.pop()
    return lines


def line(row: Any, columns: int) -> Text:
    """One row of the screen."""
    text = Text()
    for x in range(columns):
        cell = row[x]
        colour = None if cell.fg == "default" else {"brown": "yellow"}.get(cell.fg, cell.fg)
        text.append(cell.data, Style(color=colour, bold=cell.bold or None, italic=cell.italics or None))
    text.rstrip()
    return text


if __name__ == "__main__":
    main()
