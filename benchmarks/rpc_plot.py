"""The picture of `benchmarks.rpc`: speed-up by delay, how far auto drafts there, and the costs that it sees.

python -m benchmarks.rpc_plot rpc.json rpc.svg        draws a run again
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.rpc_report import Cell, Report, read_report
from specdec_cli.bench.plot import COLOURS, DOTS, GREY, INK, MARKS, STYLE

STYLES: Final = ("-", ":")
"""Of lines, by temperature."""
NOTE: Final[Any] = {
    "xytext": (7, -12),
    "textcoords": "offset points",
    "color": INK,
    "fontsize": 8,
    "bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
    "zorder": 5,
}
"""How a mean is written beside its point."""


def draw(report: Report, path: Path) -> None:
    """Write it to `path`, an .svg or a .png."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        undated = {"Date": None} if path.suffix == ".svg" else None
        to_figure(report).savefig(path, dpi=DOTS, facecolor="white", metadata=undated)


def to_figure(report: Report) -> Figure:
    cells = report.networks[0].cells
    temperatures = list(dict.fromkeys(each.temperature for each in cells))
    texts = list(dict.fromkeys(each.text for each in cells))
    figure = Figure(figsize=(10, 7.8), layout="constrained")
    figure.suptitle(report.facts[0].replace("; ", "\n"), x=0.01, ha="left", fontsize=11, color=INK)
    bars = "bars: lowest to highest turn; black: geometric mean of the texts"
    figure.supxlabel("\n".join([*report.facts[1:], bars]), x=0.01, ha="left", fontsize=7.5, color=GREY)
    axes = figure.subplots(2, 2)
    for place, temperature in zip(axes[0], temperatures, strict=False):
        draw_speed_ups(place, report, temperature, texts)
    for spare in axes[0][len(temperatures) :]:
        spare.set_axis_off()
    highest = max(each.speed_ups[-1] for network in report.networks for each in network.cells)
    for place in axes[0]:
        place.set_ylim(0, 1.08 * highest)
    draw_lengths(axes[1][0], report, temperatures, texts)
    draw_costs(axes[1][1], report)
    return figure


def draw_speed_ups(axes: Axes, report: Report, temperature: str, texts: list[str]) -> None:
    for number, text in enumerate(texts):
        cells = [network.cell(temperature, text) for network in report.networks]
        middles = [each.speed_up for each in cells]
        spread = [[each.speed_up - each.speed_ups[0] for each in cells]]
        spread += [[each.speed_ups[-1] - each.speed_up for each in cells]]
        look: Any = {"color": COLOURS[number], "marker": MARKS[number], "ms": 4, "lw": 1.2}
        axes.errorbar(range(len(cells)), middles, yerr=spread, label=text, capsize=3, elinewidth=0.8, **look)
    means = [
        statistics.geometric_mean(network.cell(temperature, text).speed_up for text in texts)
        for network in report.networks
    ]
    axes.errorbar(range(len(means)), means, color=INK, lw=2.4, label="all", zorder=1)
    for at, mean in enumerate(means):
        axes.annotate(f"{mean:.2f}", (at, mean), **NOTE)
    axes.axhline(1, color=GREY, lw=0.8, ls="--")
    axes.set_title(f"Speed-up of auto at temperature {temperature}")
    axes.set_ylabel("× plain decoding")
    axes.legend(loc="upper left")
    _delays(axes, report)


def draw_lengths(axes: Axes, report: Report, temperatures: list[str], texts: list[str]) -> None:
    for style, temperature in zip(STYLES, temperatures, strict=False):
        for number, text in enumerate(texts):
            cells: list[Cell] = [network.cell(temperature, text) for network in report.networks]
            look: Any = {"color": COLOURS[number], "marker": MARKS[number], "ms": 4, "lw": 1.4, "ls": style}
            label = f"{text}, temperature {temperature}"
            axes.plot(range(len(cells)), [each.drafted for each in cells], label=label, **look)
    axes.set_title("How far auto drafts")
    axes.set_ylabel("drafted tokens a round")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")
    _delays(axes, report)


def draw_costs(axes: Axes, report: Report) -> None:
    """The v(n) that auto decided by."""
    for number, network in enumerate(report.networks):
        counts = range(1, len(network.target) + 1)
        look: Any = {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)], "ms": 3, "lw": 1.4}
        draft = network.draft[0] / network.target[0]
        label = f"{network.milliseconds:g} ms each way (c {draft:.2f})"
        axes.plot(counts, [network.v(n) for n in counts], label=label, **look)
    axes.set_title("Cost of a target pass as measured by specdec: v(n)")
    axes.set_xlabel("tokens n in the pass")
    axes.set_ylabel("plain steps")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")


def _delays(axes: Axes, report: Report) -> None:
    axes.set_xticks(range(len(report.networks)), [f"{each.milliseconds:g}" for each in report.networks])
    axes.set_xlim(-0.3, len(report.networks) - 0.6)
    axes.set_xlabel("delay of the network, milliseconds each way")


if __name__ == "__main__":
    draw(read_report(Path(sys.argv[1])), Path(sys.argv[2]))
