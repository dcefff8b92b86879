"""All that there is to know of an installation, found out without giving up at the first thing that is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from specdec_cli.catalog import Pair
from specdec_cli.doctor.engine import Engine, read_engine
from specdec_cli.doctor.hardware import Hardware, read_hardware
from specdec_cli.doctor.places import KeptCosts, Pairs, Place, read_kept_costs, read_pairs, read_places
from specdec_cli.doctor.software import Software, read_software
from specdec_cli.errors import SpecdecError
from specdec_cli.pairs.check import CheckOptions, Report, check_pair


@dataclass(frozen=True, slots=True)
class Checked:
    """The pair that was asked about: its report, or the `problem` that it has before there is one.

    Both are None where nothing could be looked at, since llama.cpp does not load.
    """

    report: Report | None
    problem: SpecdecError | None


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found."""

    software: Software
    engine: Engine
    hardware: Hardware
    places: tuple[Place, ...]
    pairs: Pairs
    kept: KeptCosts
    checked: Checked


def examine(config: Path | None, choose: Callable[[], Pair]) -> Examination:
    """Look at everything, and at the pair of `choose`. `config` takes the place of the user's own models.toml."""
    engine = read_engine()
    loads = engine.build is not None
    return Examination(
        software=read_software(),
        engine=engine,
        hardware=read_hardware(loads=loads),
        places=read_places(config),
        pairs=read_pairs(config),
        kept=read_kept_costs(),
        checked=_check(choose, loads=loads),
    )


def _check(choose: Callable[[], Pair], *, loads: bool) -> Checked:
    try:
        pair = choose()
        return Checked(check_pair(pair, CheckOptions()) if loads else None, None)
    except SpecdecError as error:
        return Checked(None, error)
