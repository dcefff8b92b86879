"""What it all comes to, in one sentence: whether to speculate here, how far to draft, and why not if not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from specdec_cli.advice import to_reason
from specdec_cli.bench.cells import Spread
from specdec_cli.bench.prompts import ALL
from specdec_cli.bench.report import Report, Row
from specdec_cli.core.costs import Costs
from specdec_cli.core.draft_length import LONGEST
from specdec_cli.core.theory import find_loss

PLAIN: Final = "plain decoding"
CLEAR: Final = 1.03
"""A speed-up from which a difference is one: medians of two runs of the same differ by that much."""


def to_verdict(report: Report) -> str:
    """One sentence, with a part for each temperature."""
    overall = [row for row in report.overall if not row.is_plain and row.cell.speed_up is not None]
    temperatures = sorted({row.cell.temperature for row in overall})
    if not temperatures:
        return "nothing could be compared"
    parts = []
    for temperature in temperatures:
        part = _judge([row for row in overall if row.cell.temperature == temperature], report)
        parts.append(f"at temperature {temperature:g} {part}" if len(temperatures) > 1 else part)
    return "; ".join(parts)


def _judge(rows: Sequence[Row], report: Report) -> str:
    auto = next((row for row in rows if row.cell.draft_tokens == "auto"), None)
    fixed = max((row for row in rows if row is not auto), key=lambda row: _speed_up(row).median, default=None)
    known = [row for row in (auto, fixed) if row is not None]
    best = max(known, key=lambda row: _speed_up(row).median)
    if _is_clear(best):
        return _praise(auto, fixed, report)
    if all(_speed_up(row).median < 1 for row in known if row.counters.drafted):
        drafting = max(known, key=lambda row: (row.counters.drafted > 0, _speed_up(row).median))
        return f"do not speculate here: {_all_named(auto, fixed)}{_reason(drafting, report.costs)}"
    return f"speculation makes no clear difference here: {_all_named(auto, fixed)}"


def _praise(auto: Row | None, fixed: Row | None, report: Report) -> str:
    if auto is None or fixed is None:
        return f"{_all_named(auto, fixed)} here{_range(auto or fixed, report)}"
    if not _is_clear(auto):
        return f"{_all_named(None, fixed)} here{_range(fixed, report)}; auto is {_times(auto)}"
    return (
        f"auto is {_times(auto)} {PLAIN} here{_range(auto, report)}; "
        f"the best fixed length is {fixed.cell.draft_tokens} with {_times(fixed)}"
    )


def _all_named(auto: Row | None, fixed: Row | None) -> str:
    parts = [] if auto is None else [f"auto is {_times(auto)} {PLAIN}"]
    if fixed is not None:
        more = "" if parts else f" {PLAIN}"
        parts.append(f"the best fixed length, {fixed.cell.draft_tokens}, is {_times(fixed)}{more}")
    return " and ".join(parts)


def _is_clear(row: Row) -> bool:
    """Whether it is faster than plain decoding in every turn, and by more than noise."""
    return _speed_up(row).median >= CLEAR and _speed_up(row).low > 1


def _speed_up(row: Row) -> Spread:
    assert row.cell.speed_up is not None
    return row.cell.speed_up


def _times(row: Row) -> str:
    return f"{_speed_up(row).median:.2f} ×"


def _range(row: Row | None, report: Report) -> str:
    """From the kind of prompt that gains the least to the one that gains the most."""
    assert row is not None
    same = [
        each
        for each in report.rows
        if (each.cell.temperature, each.cell.draft_tokens) == (row.cell.temperature, row.cell.draft_tokens)
        and each.cell.kind != ALL
        and each.cell.speed_up is not None
    ]
    if len(same) < 2:
        return ""
    least, most = (choose(same, key=lambda each: _speed_up(each).median) for choose in (min, max))
    return f", {_times(least)} on {least.cell.kind} to {_times(most)} on {most.cell.kind}"


def _reason(row: Row, costs: Costs) -> str:
    """What stands in the way, if the costs say it."""
    counters = row.counters
    source = max(counters.by_source, key=lambda name: counters.by_source[name][0], default="")
    alpha = 1.0 if counters.alpha is None else counters.alpha  # nothing was drafted, however right it would have been
    source = source or next(iter(costs.drafts), "")
    loss = find_loss(alpha, costs, source, LONGEST)
    return "" if loss is None else f", since {to_reason(loss, alpha, costs, source)}"
