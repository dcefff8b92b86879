"""All that there is to know of an installation, found out without giving up at the first thing that is broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from specdec_cli.catalog import Pair
from specdec_cli.doctor.engine import Engine, read_engine
from specdec_cli.doctor.hardware import Hardware, read_hardware
from specdec_cli.doctor.places import KeptCosts, Pairs, Place, read_kept_costs, read_pairs, read_places
from specdec_cli.doctor.software import Software, read_software
from specdec_cli.doctor.workers import Worker, greet_workers
from specdec_cli.errors import SpecdecError
from specdec_cli.llama.devices import Device
from specdec_cli.pairs.check import CheckOptions, Report, check_pair
from specdec_cli.pairs.here import to_settings
from specdec_cli.placing import Plan, make_plan
from specdec_cli.settings import ModelSettings, Placing


@dataclass(frozen=True, slots=True)
class Checked:
    """The pair that was asked about: its report and where its layers would go, or the `problem` that it has.

    All are None where nothing could be looked at, since llama.cpp does not load. There is no `plan` before all workers
    can be used.
    """

    report: Report | None
    problem: SpecdecError | None
    plan: Plan | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found."""

    software: Software
    engine: Engine
    workers: tuple[Worker, ...]
    hardware: Hardware
    places: tuple[Place, ...]
    pairs: Pairs
    kept: KeptCosts
    checked: Checked

    @property
    def devices(self) -> tuple[Device, ...]:
        """Those of this machine, and those that workers lend."""
        return (*self.engine.devices, *_lent(self.workers))


def examine(config: Path | None, choose: Callable[[], Pair], asked: Placing) -> Examination:
    """Look at everything, and at the pair of `choose`, placed as `asked`, with the workers of these two.

    `config` takes the place of the user's own models.toml.
    """
    engine = read_engine()
    loads = engine.build is not None
    pair, problem = _choose(choose)
    placing = asked if pair is None else asked.over(pair.placing)
    workers = greet_workers(placing.rpc or (), loads=loads)
    return Examination(
        software=read_software(),
        engine=engine,
        workers=workers,
        hardware=read_hardware(loads=loads),
        places=read_places(config),
        pairs=read_pairs(config),
        kept=read_kept_costs(),
        checked=_check(pair, placing, engine, workers) if pair is not None and loads else Checked(None, problem),
    )


def _choose(choose: Callable[[], Pair]) -> tuple[Pair | None, SpecdecError | None]:
    try:
        return choose(), None
    except SpecdecError as error:
        return None, error


def _check(pair: Pair, placing: Placing, engine: Engine, workers: Sequence[Worker]) -> Checked:
    report = None
    try:
        report = check_pair(
            replace(pair, placing=placing), CheckOptions(lent=sum(each.free for each in _lent(workers)))
        )
        if any(each.problem is not None for each in workers):
            return Checked(report, None)
        settings = to_settings(ModelSettings(placing=placing), pair)
        return Checked(report, None, make_plan(pair, settings, (*engine.devices, *_lent(workers))))
    except SpecdecError as error:
        return Checked(report, error)


def _lent(workers: Sequence[Worker]) -> tuple[Device, ...]:
    return tuple(device for worker in workers for device in worker.devices)
