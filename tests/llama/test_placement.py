"""llama.cpp puts layers where it is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.llama.devices import Device, describe
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import llama, show_log
from specdec_cli.llama.placement import MODES, Placement, place
from specdec_cli.llama.weights import load_weights
from specdec_cli.llama.workers import Workers
from specdec_cli.settings import SPLIT_MODES
from tests.worker_process import WorkerProcess

A = Device("A", "", "GPU", "X", 1, 1)
B = Device("B", "", "GPU", "X", 1, 1)


@pytest.fixture
def lent() -> Iterator[tuple[Device, ...]]:
    with WorkerProcess(devices=2) as process, closing(Workers([process.endpoint])) as workers:
        yield workers.devices


def assigned(path: Path, placement: Placement) -> list[str]:
    """The name of each layer's device, by llama.cpp's log."""
    lines: list[str] = []
    show_log(lines.append)
    try:
        load_weights(path, "target", placement=placement, interrupt=Interrupt(), on_progress=lambda _: None).close()
    finally:
        show_log(None)
    return [match[1] for line in lines if (match := re.search(r"layer +\d+ assigned to device (\w+)", line))]


@pytest.mark.parametrize("split", [(1, 2), (2, 1), (3, 0), (0, 3), (1, 1), (0, 1), (0, 0)])
def test_each_layer_is_on_the_device_that_the_placement_says(
    attention_pair: Pair, lent: tuple[Device, ...], split: tuple[int, int]
) -> None:
    said = ["CPU"] * (3 - sum(split))
    for device, count in zip(lent, split, strict=True):
        said += [describe(device.pointer).name] * count  # by ggml's number in this process
    assert assigned(attention_pair.target, Placement(lent, split, 3)) == said


def test_without_devices_all_is_on_the_cpu(attention_pair: Pair) -> None:
    assert assigned(attention_pair.target, Placement()) == ["CPU"] * 3


@pytest.mark.parametrize(
    ("placement", "name"),
    [
        (Placement(), "CPU"),
        (Placement((A, B), (1, 2), 3), "A+B"),
        (Placement((A, B), (0, 3), 3), "B"),
        (Placement((A, B), (1, 1), 3), "CPU+A+B"),
        (Placement((A, B), (0, 0), 3), "CPU"),
    ],
)
def test_a_placement_is_called_by_where_anything_is(placement: Placement, name: str) -> None:
    assert placement.name == name
    assert placement.on_cpu == ("CPU" in name)
    assert replace(placement, mode="row").name == name


@pytest.mark.parametrize(("split", "is_remote"), [((1, 2), True), ((0, 3), True), ((3, 0), False), ((0, 0), False)])
def test_a_worker_counts_where_it_holds_anything(split: tuple[int, int], is_remote: bool) -> None:
    assert Placement((A, replace(B, endpoint="far:1")), split, 3).is_remote == is_remote


def test_modes_are_those_of_llama_cpp() -> None:
    assert set(MODES) == set(SPLIT_MODES)
    params = llama().llama_model_default_params()
    for mode in SPLIT_MODES:
        held = place(params, Placement(mode=mode))
        assert params.split_mode == getattr(llama(), f"LLAMA_SPLIT_MODE_{mode.upper()}")
        assert held
