"""The rows of a report as a table: grouped by prompts in a window of 80 columns, or a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.cells import cell_len

from specdec_cli.bench.report import Report, Row
from specdec_cli.terminal import ONE_LINE

GAP: Final = "  "
LEGEND: Final = (
    "× plain: speed in multiples of plain decoding: median, lowest–highest turn",
    "theory:  what α, c, v and the sampler's time predict; v = 1: papers' formula",
    "α:       accepted / examined; tok/rd: tokens a round",
    "v(γ+1):  a check in plain steps; d/v/s: % of time of draft, target, sampling",
)
MORE: Final = (
    "Σmin:    mean of Σ min(p, q); dr/rd: drafted a round; cost: of a round, in plain ones; c: of a drafted token"
)
"""What a wide table has more."""

Column = tuple[str, Callable[[Row], str]]


def to_table(report: Report, width: int | None) -> str:
    """The table, a line for each cell where `width` columns are enough for that, or in a pipe, whose width is None."""
    lines = _wide(report.rows, apart=width is not None) if is_wide(report, width) else _grouped(report.rows)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def is_wide(report: Report, width: int | None) -> bool:
    """Whether there is room for a line that says all of a cell."""
    return width is None or max(map(cell_len, _lines(report.rows, WIDE_COLUMNS))) <= width


def _wide(rows: Sequence[Row], *, apart: bool) -> Iterator[str]:
    """All lines, those of each kind of prompt `apart` from those before."""
    titles, *lines = _lines(rows, WIDE_COLUMNS)
    yield titles
    for before, row, line in zip((None, *rows), rows, lines, strict=False):
        if apart and before is not None and before.cell.kind != row.cell.kind:
            yield ""
        yield line


def _grouped(rows: Sequence[Row]) -> Iterator[str]:
    """A heading for each kind and temperature, and the titles once for each kind."""
    titles, *lines = _lines(rows, NARROW_COLUMNS)
    before: tuple[str, float] | None = None
    for row, line in zip(rows, lines, strict=True):
        group = (row.cell.kind, row.cell.temperature)
        if group != before:
            yield from [""] if before else []
            yield f"{_name(row)}, temperature {row.cell.temperature:g}"
            yield from [titles] if before is None or before[0] != group[0] else []
        before = group
        yield line


def _lines(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    cells = [[title for title, _ in columns], *([show(row) for _, show in columns] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    return [
        GAP.join(" " * (width - cell_len(cell)) + cell for cell, width in zip(line, widths, strict=True))
        for line in cells
    ]


def _name(row: Row) -> str:
    return row.cell.kind.translate(ONE_LINE)


def _length(row: Row) -> str:
    return "plain" if row.is_plain else str(row.cell.draft_tokens)


def _speed(row: Row) -> str:
    speed = row.cell.speed.median
    return f"{speed:.0f}" if speed >= 1000 else f"{speed:.1f}"


def _speed_up(row: Row) -> str:
    return "" if row.is_plain or row.cell.speed_up is None else f"{row.cell.speed_up.median:.2f}"


def _spread(row: Row) -> str:
    if row.is_plain or row.cell.speed_up is None:
        return ""
    return f"{row.cell.speed_up.low:.2f}–{row.cell.speed_up.high:.2f}"


def _number(show: Callable[[Row], float | None], digits: int = 2) -> Callable[[Row], str]:
    def shown(row: Row) -> str:
        value = show(row)
        return "" if row.is_plain else "n/a" if value is None else f"{value:.{digits}f}"

    return shown


def _shares(row: Row) -> str:
    timing = row.timing
    parts = (timing.draft, timing.verify, timing.sample)
    return "/".join(f"{100 * part / timing.generation:.0f}" for part in parts)


NARROW_COLUMNS: Final[Sequence[Column]] = (
    ("γ", _length),
    ("tok/s", _speed),
    ("× plain", _speed_up),
    ("spread", _spread),
    ("theory", _number(lambda row: row.predicted)),
    ("v = 1", _number(lambda row: row.classic)),
    ("α", _number(lambda row: row.counters.alpha)),
    ("tok/rd", _number(lambda row: row.counters.tokens_per_round)),
    ("v(γ+1)", _number(lambda row: row.check)),
    ("d/v/s", _shares),
)
WIDE_COLUMNS: Final[Sequence[Column]] = (
    ("prompts", _name),
    ("T", lambda row: f"{row.cell.temperature:g}"),
    *NARROW_COLUMNS[:7],
    ("Σmin", _number(lambda row: row.counters.expected_alpha)),
    NARROW_COLUMNS[7],
    ("dr/rd", _number(lambda row: row.counters.drafted_per_round)),
    ("c", _number(lambda row: row.step)),
    NARROW_COLUMNS[8],
    ("cost", _number(lambda row: row.cost)),
    NARROW_COLUMNS[9],
)
