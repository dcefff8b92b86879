"""What a bench or a trace measured, as theory needs it: α by place in the block, c and v, and speed-ups."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from specdec_cli.bench.prompts import ALL
from specdec_cli.bench.writing import KIND, SCHEMA
from specdec_cli.core.costs import Costs
from specdec_cli.errors import UsageError
from specdec_cli.traces.reading import read_records
from specdec_cli.traces.summary import Summary
from specdec_cli.traces.trace import Header, TraceRecord

ENOUGH: Final = 10
"""Examined tokens at a place from which their share means something."""
LARGEST: Final = 10**8
"""Bytes of a bench file: a thousand times a big one."""
DEAREST: Final = 1e9
"""Beyond what a pass, a draft or a speed-up can be, in plain steps."""
TRACE: Final = re.compile(rb'\s*{\s*"type"\s*:\s*"answer"')
BEGINNING: Final = 100
"""Bytes that tell a trace from a bench."""
HINT: Final = "specdec bench --json and specdec generate --trace write what is read here"
_DAMAGES: Final = (KeyError, TypeError, ArithmeticError, ValueError, AttributeError, IndexError)


@dataclass(frozen=True, slots=True)
class Observed:
    """What was measured: `alpha` over all places, and `alphas` by place as far as that is known.

    `share` of the rounds had a draft: one that costs nothing is not always there. `step` is c, and `passes` are
    v(1), v(2), …, both None where nobody measured them. `speed_ups` are by draft length.
    """

    name: str
    alpha: float
    alphas: tuple[float, ...]
    share: float
    step: float | None
    passes: tuple[float, ...] | None
    speed_ups: Mapping[int, float]


def read_observed(path: Path, notice: Callable[[str], object]) -> tuple[Observed, ...]:
    """What the file of a bench measured at each temperature, or a trace in its answers.

    Raises:
        UsageError: it cannot be read, is neither, is damaged, or nothing was drafted in it.
    """
    try:
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
            is_trace = TRACE.match(beginning) is not None
            data = b"" if is_trace else beginning + file.read(LARGEST)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no file can have that name"
        raise UsageError(f"{path} cannot be read: {reason}") from None
    try:
        found = tuple(_of_trace(read_records(path, notice)) if is_trace else _of_bench(_parsed(data, path)))
    except _DAMAGES as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"{'trace' if is_trace else 'bench'} {path} is damaged: {reason:.100}", hint=HINT) from None
    if not found:
        raise UsageError(f"nothing was drafted in {path}", hint="so it does not tell how often guesses are right")
    return found


def _of_trace(records: Iterable[TraceRecord]) -> Iterator[Observed]:
    """Of its answers with a fixed length, if there are any; see `_of_cells`."""
    whole, fixed = Summary(), Summary()
    is_fixed = False
    for record in records:
        if isinstance(record, Header):
            is_fixed = record.draft_tokens not in (0, "auto")
        whole.add(record)
        if is_fixed:
            fixed.add(record)
    summary, costs = whole if fixed.counters.alpha is None else fixed, whole.costs
    counters, positions = summary.counters, summary.positions
    if counters.alpha is None:
        return
    drafted = {source: share[0] for source, share in counters.by_source.items()}
    yield _checked(
        Observed(
            "all answers" if summary.answers == whole.answers else "answers of a fixed length",
            counters.alpha,
            _by_place([each.accepted for each in positions], [each.examined for each in positions]),
            1.0 if summary is whole or (costs and costs.drafts) else positions[0].examined / counters.rounds,
            None if costs is None else _mean([(costs.draft(source, 1, 1), n) for source, n in drafted.items()]),
            None if costs is None else _passes(costs),
            {},
        )
    )


def _parsed(data: bytes, path: Path) -> Any:
    try:
        bench = json.loads(data)
    except (ValueError, RecursionError):
        bench = None
    if not isinstance(bench, dict) or bench.get("type") != KIND:
        raise UsageError(f"{path} is neither a bench nor a trace", hint=HINT)
    if bench.get("schema") != SCHEMA:
        raise UsageError(f"bench {path} has schema {bench.get('schema')!s:.20}, and this specdec reads {SCHEMA}")
    return bench


def _of_bench(bench: Any) -> Iterator[Observed]:
    costs = Costs(tuple(map(float, bench["costs"]["target"])), dict.fromkeys(bench["costs"]["drafts"], ()))
    cells = [each for each in bench["cells"] if each["examined"]]
    kinds = {each["prompts"] for each in cells}
    cells = [each for each in cells if each["prompts"] == ALL or len(kinds) == 1]
    for temperature in sorted({float(each["temperature"]) for each in cells}):
        yield _checked(_of_cells(temperature, [each for each in cells if each["temperature"] == temperature], costs))


def _checked(observed: Observed) -> Observed:
    """The same; raises ValueError for numbers that nobody can have measured."""
    for share in (observed.alpha, *observed.alphas, observed.share):
        if not 0 <= share <= 1:
            raise ValueError(f"{share} is no share")
    if observed.passes == ():
        raise ValueError("nobody measured a pass")
    for count in (1 + (observed.step or 0.0), *(observed.passes or ()), *observed.speed_ups.values()):
        if not 0 < count < DEAREST:
            raise ValueError(f"{count} is no time")
    return observed


def _of_cells(temperature: float, cells: Sequence[Any], costs: Costs) -> Observed:
    """Of all fixed lengths together, since α belongs to the text and not to them; auto chooses where to draft far.

    Of auto alone nobody knows whether there was a draft where it drafted nothing.
    """
    lengths = [each for each in cells if each["draft_tokens"] != "auto"]
    fixed = lengths or cells
    return Observed(
        f"temperature {temperature:g}",
        sum(int(each["accepted"]) for each in fixed) / sum(int(each["examined"]) for each in fixed),
        _by_place(_added(each["accepted_at"] for each in fixed), _added(each["examined_at"] for each in fixed)),
        1.0 if costs.drafts or not lengths else _share(lengths),
        _mean([(float(each["c"]), int(each["drafted"])) for each in fixed]),
        _passes(costs),
        {
            int(each["draft_tokens"]): float(each["speed_up"]["median"])
            for each in cells
            if each["draft_tokens"] != "auto" and each["speed_up"] is not None
        },
    )


def _share(cells: Sequence[Any]) -> float:
    """Of the rounds, those with a draft: the first token of each is examined."""
    return sum(int(each["examined_at"][0]) for each in cells) / sum(int(each["rounds"]) for each in cells)


def _by_place(accepted: Sequence[int], examined: Sequence[int]) -> tuple[float, ...]:
    """accepted / examined, up to the last place that was examined often enough."""
    known = [kept / seen for kept, seen in zip(accepted, examined, strict=True) if seen >= ENOUGH]
    return tuple(known)


def _passes(costs: Costs) -> tuple[float, ...]:
    """v(1), v(2), … as far as they were measured."""
    return tuple(costs.verify(count) for count in range(1, len(costs.target) + 1))


def _added(counts: Any) -> list[int]:
    return [sum(map(int, each)) for each in zip_longest(*counts, fillvalue=0)]


def _mean(weighted: Sequence[tuple[float, int]]) -> float:
    weight = sum(count for _, count in weighted)
    return sum(value * count for value, count in weighted) / weight if weight else 0.0
