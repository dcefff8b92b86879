"""What is found wrong, and in which order it is to be put right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.core.costs import Costs
from specdec_cli.doctor.engine import Engine
from specdec_cli.doctor.examination import Checked, Examination
from specdec_cli.doctor.findings import find_faults
from specdec_cli.doctor.hardware import Hardware
from specdec_cli.doctor.places import KeptCosts, Pairs, Place
from specdec_cli.doctor.software import Software
from specdec_cli.doctor.workers import Worker
from specdec_cli.errors import ModelError, UsageError
from specdec_cli.llama.devices import Device
from specdec_cli.llama.greeting import Greeting
from specdec_cli.llama.library import Build

FLAGS = ("AVX", "AVX2", "FMA", "F16C")
BUILD = Build("0.3.36", "0.25.3", "abc", ("RPC", "CPU"), {"CPU": FLAGS})
WITHOUT_RPC = replace(BUILD, backends=("CPU",))
NEAR = Worker("a:1", Greeting("a:1", (7, 0, 0), 0.029, ((10**9, 10**9),)))
FAR = Worker("b:2", Greeting("b:2", (7, 0, 0), 0.045, ((10**9, 10**9),)))
LOST = Worker("c:3", problem=ModelError("worker c:3: nothing listens there", hint="start it"))
CARD = Device("CUDA0", "a card", "GPU", "CUDA", 10**9, 2 * 10**9)
SOUND = Examination(
    software=Software("1.0", "CPython 3.11", "Linux", {"numpy": "2"}, {}),
    engine=Engine(BUILD),
    workers=(),
    hardware=Hardware("a CPU", 8, 8, None, frozenset(FLAGS), 10**10, 10**10, ""),
    places=(Place("cache", Path("/cache"), True, True, 0),),
    pairs=Pairs(3, 1, "demo"),
    kept=KeptCosts(Path("/cache/costs.json"), (Costs((0.1, 0.2), {}),)),
    checked=Checked(None, None),
)


def having(**changes: Any) -> Examination:
    """A sound machine with other hardware, or another part."""
    parts = {name: value for name, value in changes.items() if hasattr(SOUND, name)}
    hardware = {name: value for name, value in changes.items() if name not in parts}
    return replace(replace(SOUND, hardware=replace(SOUND.hardware, **hardware)), **parts)


def test_where_nothing_is_wrong_nothing_is_found() -> None:
    assert find_faults(SOUND) == []


@pytest.mark.parametrize(
    ("found", "message", "way_out", "code"),
    [
        (having(engine=Engine(None, problem="no library", hint="get one")), "no library", "get one", 3),
        (having(features=frozenset()), "built for AVX, AVX2, F16C, FMA, which this CPU does not have", "install", 3),
        (having(checked=Checked(None, ModelError("not here", hint="pull"))), "not here", "pull", 3),
        (having(checked=Checked(None, UsageError("no pair", hint="known"))), "no pair", "known", 2),
        (having(pairs=Pairs(problem=UsageError("line 3 is wrong"))), "line 3 is wrong", "correct", 2),
        (having(software=replace(SOUND.software, packages={"rich": None})), "not installed: rich", "pip install", 2),
        (having(places=(Place("cache", Path("/c"), True, False, 0),)), "/c cannot be written", "permissions", 2),
        (having(kept=KeptCosts(Path("/c.json"), problem="is damaged")), "/c.json is damaged", "delete it", 2),
        (having(workers=(LOST,)), "worker c:3: nothing listens there", "start it", 3),
        (having(workers=(FAR,)), "worker b:2 is 45 ms away, which each pass", "more is drafted", 0),
        (having(workers=(NEAR,), engine=Engine(WITHOUT_RPC)), "is built without RPC", "-DGGML_RPC=ON", 3),
        (having(features=frozenset([*FLAGS, "DOTPROD"])), "has DOTPROD, and llama.cpp is built without", "install", 0),
        (having(card="NVIDIA"), "a graphics card (NVIDIA) that this build", "-DGGML_CUDA=on", 0),
        (having(quota=1.5), "the time of 1.5 CPUs and would run 8 threads", "--threads 1", 0),
        (having(quota=0.5), "the time of 0.5 CPUs", "--threads 1", 0),
    ],
)
def test_each_fault_is_named_with_its_way_out_and_exit_code(
    found: Examination, message: str, way_out: str, code: int
) -> None:
    (finding,) = find_faults(found)
    assert message in finding.message
    assert way_out in finding.way_out
    assert finding.exit_code == code


@pytest.mark.parametrize(
    "found",
    [
        having(features=None),
        having(quota=8.0),
        having(workers=(NEAR,)),
        having(engine=Engine(WITHOUT_RPC)),
        having(card="NVIDIA", engine=Engine(BUILD, (CARD,))),
        having(features=frozenset([*FLAGS, "AVX512"])),
    ],
)
def test_what_is_not_known_or_does_not_matter_is_no_fault(found: Examination) -> None:
    assert find_faults(found) == []


def test_what_cannot_run_comes_before_what_is_broken_and_that_before_what_is_slow() -> None:
    found = having(
        quota=1.0,
        kept=KeptCosts(Path("/c.json"), problem="is damaged"),
        checked=Checked(None, ModelError("not here")),
    )
    assert [finding.exit_code for finding in find_faults(found)] == [3, 2, 0]


def test_one_fault_that_two_parts_meet_is_told_once() -> None:
    error = UsageError("line 3 is wrong")
    assert len(find_faults(having(pairs=Pairs(problem=error), checked=Checked(None, error)))) == 1
