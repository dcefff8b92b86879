"""How long passes take here: measured once for a pair on this machine, kept in the user's cache folder, then frozen.

A run never looks at a clock to decide anything: it reads these numbers, so that a seed repeats it while they stay.
Those of a busy machine are not kept: the next run measures anew, may draft other blocks and draw another text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import platformdirs

from specdec_cli.core.costs import Costs
from specdec_cli.core.draft_length import LONGEST
from specdec_cli.files import replace_file
from specdec_cli.llama.context import Context
from specdec_cli.llama.library import llama
from specdec_cli.llama.weights import Weights

LENGTHS: Final = (1, 2, 4, 8, LONGEST + 1, 3, 6, 5, 12, 7, 10, 14, 9, 11, 13, 15, 16)
"""Passes over so many tokens are measured, the most telling first."""
NEEDED: Final = 5
"""How many of them must be; those that time does not suffice for lie on the line between their neighbours."""
SECONDS: Final = 3.0
"""For each model, but for the first `NEEDED` lengths, which are measured however long they take."""
SHORT_SWEEPS, SWEEPS = 2, 8
"""How often they are measured, the first times the needed ones alone: two passes tell more than another length."""
UNSTEADY: Final = 2.0
"""Passes over as many tokens that differ by so much are those of a busy machine: used, and not kept."""
CONTEXT: Final = 32
"""Tokens that are in the cache meanwhile, if there is room."""


def find_costs(
    key: str,
    measure: Callable[[], Measured],
    *,
    renew: bool,
    announce: Callable[[str], object],
    notice: Callable[[str], object],
) -> Costs:
    """The costs kept for `key`, or what `measure` finds now; `renew` if it should find them anew.

    That is kept if it is steady; otherwise `notice` is told.
    """
    kept = None if renew else load(key)
    if kept is not None:
        return kept
    announce("measuring how fast this machine is, once")
    measured = measure()
    if measured.is_steady:
        save(key, measured.costs)
    else:
        notice("the machine is busy: its speed is measured for this run and not kept, so a seed may not repeat it")
    return measured.costs


@dataclass(frozen=True, slots=True)
class Measured:
    """Costs, and whether the machine was idle enough for them to be trusted in later runs."""

    costs: Costs
    is_steady: bool


def measure(target: Context, drafts: Mapping[str, Context], token: int) -> Measured:
    """Costs of passes over `token`, behind up to `CONTEXT` of it. What the contexts held is gone, and they end empty.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    times = {name: _measure(draft, token, every_row=False) for name, draft in drafts.items()}
    of_target = _measure(target, token, every_row=True)
    costs = Costs(_to_curve(of_target), {name: _to_curve(each) for name, each in times.items()})
    return Measured(costs, all(_is_steady(each) for each in (of_target, *times.values())))


Times = dict[int, list[float]]
"""Seconds of each pass over so many tokens."""


def _measure(context: Context, token: int, *, every_row: bool) -> Times:
    context.rewind(0)
    before = max(0, min(CONTEXT, context.size - LONGEST - 1))
    context.extend([token] * before, rows=0)
    lengths = [length for length in LENGTHS if before + length <= context.size]
    times: Times = {}
    started = time.perf_counter()
    try:
        _time(context, token, 1, every_row)  # the first one of all warms up
        for sweep in range(SWEEPS):
            for length in lengths[:NEEDED] if sweep < SHORT_SWEEPS else lengths:
                if time.perf_counter() - started > SECONDS and sweep:
                    break
                if context.is_remote and length not in times:  # a worker is asked questions about each new length
                    started += _time(context, token, length, every_row)
                for each in {1, length}:  # every other pass is counted in passes over one token
                    times.setdefault(each, []).append(_time(context, token, each, every_row))
    finally:
        context.rewind(0)
    return times


def _to_curve(times: Times) -> tuple[float, ...]:
    """The usual seconds of a pass over 1 to LONGEST + 1 tokens: medians, which are what plain decoding takes a token.

    The least seconds are not: of the many passes over one token they are 5 to 10 % below that.
    """
    usual = {length: statistics.median(each) for length, each in times.items()}
    return tuple(_between(usual, length) for length in range(1, LONGEST + 2))


def _is_steady(times: Times) -> bool:
    return len(times) >= NEEDED and statistics.median(max(each) / min(each) for each in times.values()) < UNSTEADY


def _time(context: Context, token: int, length: int, every_row: bool) -> float:
    before, started = context.length, time.perf_counter()
    context.extend([token] * length, rows=length if every_row else 1)
    context.rewind(before)
    seconds = time.perf_counter() - started
    context.extend([], rows=0)  # a recurrent model may owe what it took back; a round does not owe that much
    return seconds


def _between(known: Mapping[int, float], length: int) -> float:
    if length in known:
        return known[length]
    below, above = (
        max(each for each in known if each < length),
        min((each for each in known if each > length), default=0),
    )
    if not above:
        return known[below]
    return known[below] + (known[above] - known[below]) * (length - below) / (above - below)


def to_distance(round_trip: float) -> int:
    """How far a worker is, of `round_trip` seconds, in steps of twice as many milliseconds; 0 is up to 1.4.

    Costs are kept for each distance: a network that is another one now does not repeat those of the last one.
    """
    return round(math.log2(max(1.0, 1000 * round_trip)))


def key_of(weights: Sequence[Weights], settings: Sequence[Any]) -> str:
    """What the costs of a pair depend on: files, backends, settings of speed, this machine and the library."""
    files = [[str(each.path.resolve()), *_stamp(each.path), each.backend] for each in weights]
    machine = [platform.node(), platform.machine(), os.cpu_count(), llama().__version__]
    return hashlib.sha256(json.dumps([files, list(settings), machine], default=str).encode()).hexdigest()[:32]


def _stamp(path: Path) -> tuple[int, int]:
    """Size of a file and when it was written; of one that was removed since it was loaded there is neither."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def load(key: str) -> Costs | None:
    """The kept costs of `key`; None if there are none, or none that anybody can have measured."""
    entry: Any = _read().get(key)
    try:
        drafts = {name: tuple(map(float, seconds)) for name, seconds in entry["drafts"].items()}
        costs = Costs(tuple(map(float, entry["target"])), drafts)
    except (TypeError, KeyError, AttributeError, ValueError):
        return None
    curves = (costs.target, *drafts.values())
    return costs if all(curve and all(0 < each < math.inf for each in curve) for curve in curves) else None


def save(key: str, costs: Costs) -> None:
    """Keep `costs`, whole or not at all; a cache folder that cannot be written costs a measurement each time."""
    entries = _read() | {key: {"target": costs.target, "drafts": dict(costs.drafts)}}
    path = _path()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(entries).encode())


def _path() -> Path:
    return platformdirs.user_cache_path("specdec", appauthor=False) / "costs.json"


def _read() -> dict[str, Any]:
    try:
        entries = json.loads(_path().read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}
