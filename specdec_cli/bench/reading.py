"""What a bench or a trace measured, as theory needs it: α by place in the block, c and v, and speed-ups."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from specdec_cli.bench.prompts import ALL
from specdec_cli.bench.writing import KIND, SCHEMA
from specdec_cli.core.costs import Costs
from specdec_cli.errors import UsageError
from specdec_cli.files import read_file
from specdec_cli.traces.reading import read_records
from specdec_cli.traces.summary import Summary, summarise

ENOUGH: Final = 10
"""Examined tokens at a place from which their share means something."""
LARGEST: Final = 10**8
"""Bytes of a bench file: a thousand times a big one."""
TRACE: Final = b'{"type":"answer"'
HINT: Final = "specdec bench --json and specdec generate --trace write what is read here"


@dataclass(frozen=True, slots=True)
class Observed:
    """What was measured: `alpha` over all places, and `alphas` by place as far as that is known.

    `share` of the rounds had a draft: one that costs nothing is not always there. `step` is c, and `passes` are
    v(1), v(2), … in any unit, None where nobody measured them. `speed_ups` are by draft length.
    """

    name: str
    alpha: float
    alphas: tuple[float, ...]
    share: float
    step: float
    passes: tuple[float, ...] | None
    speed_ups: Mapping[int, float]


def read_observed(path: Path, notice: Callable[[str], object]) -> tuple[Observed, ...]:
    """What the file of a bench measured at each temperature, or a trace in all of its answers.

    Raises:
        UsageError: it cannot be read, is neither, is damaged, or nothing was drafted in it.
    """
    try:
        with path.open("rb") as file:
            beginning = file.read(len(TRACE))
        data = b"" if beginning == TRACE or path.stat().st_size > LARGEST else read_file(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no file can have that name"
        raise UsageError(f"{path} cannot be read: {reason}") from None
    if beginning == TRACE:
        found = tuple(_of_trace(summarise(read_records(path, notice))))
    else:
        found = tuple(_of_bench(_parsed(data, path), path))
    if not found:
        raise UsageError(f"nothing was drafted in {path}", hint="so it does not tell how often guesses are right")
    return found


def _of_trace(summary: Summary) -> Iterator[Observed]:
    counters, costs = summary.counters, summary.costs
    if counters.alpha is None:
        return
    drafted = {source: share[0] for source, share in counters.by_source.items()}
    yield Observed(
        "all answers",
        counters.alpha,
        _by_place([each.accepted for each in summary.positions], [each.examined for each in summary.positions]),
        1.0,
        0.0 if costs is None else _mean({source: (costs.draft(source, 1, 1), n) for source, n in drafted.items()}),
        None if costs is None else costs.target,
        {},
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


def _of_bench(bench: Any, path: Path) -> Iterator[Observed]:
    try:
        costs = Costs(tuple(map(float, bench["costs"]["target"])), dict.fromkeys(bench["costs"]["drafts"], ()))
        cells = [each for each in bench["cells"] if each["examined"]]
        kinds = {each["prompts"] for each in cells}
        cells = [each for each in cells if each["prompts"] == ALL or len(kinds) == 1]
        for temperature in sorted({float(each["temperature"]) for each in cells}):
            found = _of_cells(temperature, [each for each in cells if each["temperature"] == temperature], costs)
            _check(found)
            yield found
    except (KeyError, TypeError, ArithmeticError, ValueError, AttributeError, IndexError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"bench {path} is damaged: {reason:.100}", hint=HINT) from None


def _check(observed: Observed) -> None:
    """Raise ValueError for numbers that nobody can have measured."""
    for share in (observed.alpha, *observed.alphas, observed.share):
        if not 0 <= share <= 1:
            raise ValueError(f"{share} is no share")
    if not observed.passes:
        raise ValueError("nobody measured a pass")
    for count in (observed.step + 1, *observed.passes, *observed.speed_ups.values()):
        if not 0 < count < math.inf:
            raise ValueError(f"{count} is no time")


def _of_cells(temperature: float, cells: Sequence[Any], costs: Costs) -> Observed:
    """Of all fixed lengths together, since α belongs to the text and not to them; auto chooses where to draft far."""
    fixed = [each for each in cells if each["draft_tokens"] != "auto"] or cells
    return Observed(
        f"temperature {temperature:g}",
        sum(int(each["accepted"]) for each in fixed) / sum(int(each["examined"]) for each in fixed),
        _by_place(_added(each["accepted_at"] for each in fixed), _added(each["examined_at"] for each in fixed)),
        1.0 if costs.drafts else _share(fixed),
        _mean({str(at): (float(each["c"]), int(each["drafted"])) for at, each in enumerate(fixed)}),
        tuple(costs.verify(count) for count in range(1, len(costs.target) + 1)),
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


def _added(counts: Any) -> list[int]:
    return [sum(map(int, each)) for each in zip_longest(*counts, fillvalue=0)]


def _mean(weighted: Mapping[str, tuple[float, int]]) -> float:
    weight = sum(count for _, count in weighted.values())
    return sum(value * count for value, count in weighted.values()) / weight if weight else 0.0
