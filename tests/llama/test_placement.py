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
from specdec_cli.llama.library import show_log
from specdec_cli.llama.placement import Placement
from specdec_cli.llama.weights import load_weights
from specdec_cli.llama.workers import Workers
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


@pytest.mark.parametrize("split", [(1.0, 2.0), (2.0, 1.0), (3.0, 0.0), (0.0, 3.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)])
def test_each_layer_is_on_the_device_that_the_placement_says(
    attention_pair: Pair, lent: tuple[Device, ...], split: tuple[float, float]
) -> None:
    count = int(sum(split))
    said = ["CPU"] * (3 - count)
    for device, share in zip(lent, split, strict=True):
        said += [describe(device.pointer).name] * int(share)  # by ggml's number in this process
    assert assigned(attention_pair.target, Placement(lent, count, 3, split)) == said


def test_without_devices_all_is_on_the_cpu(attention_pair: Pair) -> None:
    assert assigned(attention_pair.target, Placement()) == ["CPU"] * 3


@pytest.mark.parametrize(
    ("placement", "name"),
    [
        (Placement(), "CPU"),
        (Placement((A, B), 3, 3, (1, 2)), "A+B"),
        (Placement((A, B), 3, 3, (0, 3)), "B"),
        (Placement((A, B), 2, 3, (1, 1)), "CPU+A+B"),
        (Placement((A, B), 0, 3, (0, 0)), "CPU"),
    ],
)
def test_a_placement_is_called_by_where_anything_is(placement: Placement, name: str) -> None:
    assert placement.name == name
    assert placement.on_cpu == ("CPU" in name)
    assert replace(placement, mode="row").name == name
