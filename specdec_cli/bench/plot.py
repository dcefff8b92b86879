"""The pictures of a report: speed-up by draft length, measured and predicted; acceptance by place; v(n).

Colours are those of Okabe and Ito, which colour-blind readers tell apart; nothing is told by colour alone.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from specdec_cli.bench.prompts import ALL
from specdec_cli.bench.report import Report, Row
from specdec_cli.errors import UsageError
from specdec_cli.files import replace_file
from specdec_cli.limits import DraftTokens

INK: Final = "#222222"
GREY: Final = "#777777"
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKS: Final = ("o", "s", "^", "D", "v", "P")
STYLE: Final[Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "text.parse_math": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "specdec",
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "legend.fontsize": 8,
}
COLUMN: Final = 4.8
HEIGHT: Final = 7.8
"""Inches."""
DOTS: Final = 160
"""Of a .png, an inch."""
ENOUGH: Final = 3
"""Examined tokens at a place from which their share is drawn."""
CAPTION_LETTERS: Final = 30
"""Of the caption, an inch."""


def draw(report: Report, path: Path) -> None:
    """Write the pictures to `path`, an .svg or a .png file.

    Raises:
        UsageError: it cannot be written.
    """
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name may need letters that the font lacks, and shows boxes then
        mpl.rcdefaults()  # whatever the user draws in
        mpl.rcParams.update(STYLE)
        figure = to_figure(report)
        content = io.BytesIO()
        kind = path.suffix.lower().removeprefix(".")
        undated = {"Date": None} if kind == "svg" else None
        figure.savefig(content, format=kind, dpi=DOTS, facecolor="white", metadata=undated)
    try:
        replace_file(path, content.getvalue())
    except OSError as error:
        raise UsageError(f"--plot {path} cannot be written: {error.strerror}") from None


def to_figure(report: Report) -> Figure:
    """A column for each temperature, two at least; speed-ups in the first row."""
    temperatures = sorted({row.cell.temperature for row in report.rows})
    columns = max(len(temperatures), 2)
    figure = Figure(figsize=(COLUMN * columns, HEIGHT), layout="constrained")
    caption = _caption(report, columns)
    title = f"{Path(report.facts.target.path).name}\nwith {_draft(report)}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK)
    figure.supxlabel(caption, x=0.01, ha="left", fontsize=7.5, color=GREY)
    axes = figure.subplots(2, columns, squeeze=False)
    for at, temperature in enumerate(temperatures):
        _draw_speed_ups(axes[0][at], [row for row in report.rows if row.cell.temperature == temperature], report)
        axes[0][at].set_title(f"Speed-up at temperature {temperature:g}")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
    for spare in axes[0][len(temperatures) :]:
        spare.set_axis_off()
    _draw_acceptance(axes[1][0], report)
    _draw_costs(axes[1][1], report)
    for spare in axes[1][2:]:
        spare.set_axis_off()
    return figure


def _draft(report: Report) -> str:
    return Path(report.facts.draft.path).name if report.facts.draft else report.facts.draft_name


def _caption(report: Report, columns: int) -> str:
    machine, plan = report.facts.machine, report.plan
    parts = (
        f"{machine.cpu}, {machine.cores} cores usable, {machine.system}",
        f"llama-cpp-python {machine.llama_cpp_python}, specdec {machine.specdec}",
        f"target on {report.facts.target.backend}, rule {plan.rule}, up to {plan.max_tokens} tokens an answer, "
        f"{len(report.measurement.samples)} answers; bars: lowest to highest turn",
    )
    return "\n".join(textwrap.fill(each, round(COLUMN * columns * CAPTION_LETTERS)) for each in parts)


def _draw_speed_ups(axes: Axes, rows: Sequence[Row], report: Report) -> None:
    """Each kind as its own thin line, and all of them together with spread and predictions."""
    overall = [row for row in rows if row in report.overall and row.cell.speed_up and not row.is_plain]
    lengths = [row.cell.draft_tokens for row in overall]
    kinds = [kind for kind in dict.fromkeys(row.cell.kind for row in rows) if kind != ALL]
    for number, kind in enumerate(kinds if len(kinds) > 1 else []):
        own = {row.cell.draft_tokens: row.cell.speed_up for row in rows if row.cell.kind == kind and not row.is_plain}
        medians = [each.median if (each := own.get(length)) else None for length in lengths]
        _draw_line(axes, lengths, medians, label=_label(kind), lw=1, ms=4, **_look(number))
    spreads = [row.cell.speed_up for row in overall if row.cell.speed_up]
    name = "measured, all" if len(kinds) > 1 else "measured"
    middles = [each.median for each in spreads]
    _draw_line(axes, lengths, middles, label=name, color=INK, lw=2.2, marker="o", ms=5)
    bars = [[each.median - each.low for each in spreads], [each.high - each.median for each in spreads]]
    axes.errorbar(range(len(spreads)), middles, yerr=bars, fmt="none", ecolor=INK, capsize=3)
    hollow = {"color": INK, "ls": "--", "marker": "D", "mfc": "white", "ms": 6, "lw": 1.2}
    _draw_line(axes, lengths, [row.predicted for row in overall], label="predicted", **hollow)
    crosses = {"color": GREY, "ls": ":", "marker": "x", "ms": 5, "lw": 1.2}
    _draw_line(axes, lengths, [row.classic for row in overall], label="predicted if v = 1", **crosses)
    axes.axhline(1, color=INK, lw=0.8)
    axes.set_xticks(range(len(lengths)), [str(each) for each in lengths])
    axes.set_xlim(-0.4, len(lengths) - 0.6)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("draft length γ")
    axes.set_ylabel("× plain decoding")


def _label(kind: str) -> str:
    """A name as a legend shows it: one that begins with a line would be left out."""
    return f" {kind}" if kind.startswith("_") else kind


def _draw_line(axes: Axes, lengths: Sequence[DraftTokens], values: Sequence[float | None], **look: Any) -> None:
    """A line over the fixed lengths; auto is not on their scale and stands alone."""
    known = [math.nan if each is None else each for each in values]
    fixed = [each if length != "auto" else math.nan for length, each in zip(lengths, known, strict=True)]
    axes.plot(range(len(known)), fixed, **look)
    axes.plot(range(len(known)), known, **{**look, "ls": "none", "label": None})


def _look(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)]}


def _draw_acceptance(axes: Axes, report: Report) -> None:
    """How often a token is kept by its place in the block, of the longest blocks, all before it being kept."""
    axes.set_title("Acceptance by place in the block")
    for number, row in enumerate(_longest(report)):
        shares = [
            kept / examined if examined >= ENOUGH else math.nan
            for kept, examined in zip(row.kept, row.examined, strict=True)
        ]
        axes.plot(range(1, len(shares) + 1), shares, label=_named(row), lw=1.4, ms=5, **_look(number))
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("place, all before it being kept")
    axes.set_ylabel("kept of examined")
    _ticks(axes)
    if axes.get_lines():
        axes.legend(loc="lower left")
    else:
        axes.set_title("Nothing was drafted")


def _longest(report: Report) -> list[Row]:
    """For each temperature the row of the longest blocks, which auto makes only where they are easy."""

    def reach(row: Row) -> tuple[bool, int]:
        return row.cell.draft_tokens != "auto", len(row.examined)

    temperatures = sorted({row.cell.temperature for row in report.overall})
    found = []
    for temperature in temperatures:
        rows = [row for row in report.overall if row.cell.temperature == temperature and row.examined]
        found += [max(rows, key=reach)] if rows else []
    return found


def _named(row: Row) -> str:
    return f"temperature {row.cell.temperature:g}, γ = {row.cell.draft_tokens}"


def _draw_costs(axes: Axes, report: Report) -> None:
    """What passes cost, and rounds with their drafts."""
    costs = report.costs
    counts = range(1, len(costs.target) + 1)
    axes.set_title("Cost of a pass, in plain steps")
    axes.plot(counts, [costs.verify(n) for n in counts], label="v(n): check n tokens", lw=1.6, ms=4, **_look(0))
    for number, name in enumerate(costs.drafts, 1):
        rounds = [costs.verify(n) + costs.draft(name, n - 1, 1) for n in counts]
        axes.plot(counts, rounds, label=f"and draft n − 1 of them ({name})", lw=1.2, ms=4, **_look(number))
    axes.plot(counts, list(counts), label="as dear as one by one", color=GREY, ls=":", lw=1)
    axes.set_xlabel("tokens n = γ + 1")
    axes.set_ylabel("plain steps")
    axes.set_ylim(bottom=0)
    _ticks(axes)
    axes.legend(loc="upper left")


def _ticks(axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
