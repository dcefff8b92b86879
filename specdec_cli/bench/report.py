"""All that a bench found: a row for each cell, what it was measured on, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specdec_cli.bench.cells import Cell, to_cells
from specdec_cli.bench.facts import Facts
from specdec_cli.bench.measuring import Measurement
from specdec_cli.bench.plan import Plan
from specdec_cli.bench.predicting import Sampling, classic, predict, to_blocks
from specdec_cli.bench.prompts import ALL
from specdec_cli.core.costs import Costs
from specdec_cli.core.stats import Counters, Timing


@dataclass(frozen=True, slots=True)
class Row:
    """A cell with what theory says of it; everything that nothing was drafted for is None.

    `step` is c, and `check` v of the passes that were made: γ + 1 tokens, or the mean where γ varies. `kept` and
    `examined` are by place in the block. `cost` is what a round took, in plain rounds of the same answers.
    """

    cell: Cell
    counters: Counters
    timing: Timing
    step: float | None
    check: float | None
    cost: float | None
    predicted: float | None
    classic: float | None
    kept: tuple[int, ...]
    examined: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        """Whether it is the plain decoding that others are compared with."""
        return self.cell.draft_tokens == 0


@dataclass(frozen=True, slots=True)
class Report:
    """See the module. `costs` are those that predictions rest on, measured anew in each turn."""

    plan: Plan
    facts: Facts
    costs: Costs
    measurement: Measurement
    rows: tuple[Row, ...]

    @property
    def overall(self) -> tuple[Row, ...]:
        """The rows about all prompts."""
        kinds = {row.cell.kind for row in self.rows}
        return tuple(row for row in self.rows if len(kinds) == 1 or row.cell.kind == ALL)


def to_rows(measurement: Measurement, costs: Costs) -> tuple[Row, ...]:
    """A row for each cell of `measurement`."""
    return tuple(_with_theory(to_cells(measurement.samples), costs))


def _with_theory(cells: Sequence[Cell], costs: Costs) -> Iterator[Row]:
    plain: Cell | None = None
    for cell in cells:
        if cell.draft_tokens == 0:
            plain = cell
            yield _plain_row(cell)
        elif plain is not None and (plain.kind, plain.temperature) == (cell.kind, cell.temperature):
            yield _drafted_row(cell, plain, costs)


def _plain_row(cell: Cell) -> Row:
    return Row(cell, cell.counters, cell.timing, None, None, None, None, None, (), ())


def _drafted_row(cell: Cell, plain: Cell, costs: Costs) -> Row:
    counters, timing = cell.counters, cell.timing
    rounds = [each for sample in cell.samples for each in sample.run.rounds]
    blocks = [block for sample in cell.samples for block in to_blocks(sample.run.rounds)]
    pass_seconds = plain.timing.verify / plain.counters.rounds
    sampling = Sampling(plain.sampling / pass_seconds, cell.sampling / pass_seconds)
    alpha, step = counters.alpha, _step(counters, costs)
    lengths = [each.drafted for each in blocks] if cell.draft_tokens == "auto" else [cell.draft_tokens]
    places = range(max((len(each.overlaps) for each in rounds), default=0))
    return Row(
        cell,
        counters,
        timing,
        step,
        sum(costs.verify(length + 1) for length in lengths) / len(lengths),
        (timing.generation / counters.rounds) / (plain.timing.generation / plain.counters.rounds),
        predict(blocks, alpha or 0.0, costs, sampling),
        None if alpha is None or step is None else classic(alpha, step, lengths),
        tuple(sum(place < each.accepted for each in rounds) for place in places),
        tuple(sum(place < len(each.overlaps) for each in rounds) for place in places),
    )


def _step(counters: Counters, costs: Costs) -> float | None:
    """c, the mean over all that was drafted if there were several drafters."""
    drafted = {source: share[0] for source, share in counters.by_source.items() if share[0]}
    if not drafted:
        return None
    steps = sum(count * costs.draft(source, 1, 1) for source, count in drafted.items())
    return steps / sum(drafted.values())
