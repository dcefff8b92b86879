"""What a pair says of where its models go."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import find_pair
from specdec_cli.errors import UsageError
from specdec_cli.placing_keys import PLACING_KEYS, faults, to_flat, to_placing, to_placing_keys
from specdec_cli.settings import ModelPlacing, ModelSettings, Placing

FULL: dict[str, Any] = {
    "rpc": ["far:1", "near:2"],
    "device": ["CUDA0", "far:1"],
    "draft_device": ["none"],
    "gpu_layers": "auto",
    "draft_gpu_layers": 0,
    "tensor_split": [3, 1.5],
    "draft_tensor_split": [1],
    "split_mode": "row",
    "draft_split_mode": "none",
    "main_gpu": 1,
    "draft_main_gpu": 0,
}
PLACED = Placing(
    ("far:1", "near:2"),
    ModelPlacing(("CUDA0", "far:1"), "auto", (3, 1.5), "row", 1),
    ModelPlacing(("none",), 0, (1,), "none", 0),
)


def written(tmp_path: Path, lines: str) -> Path:
    path = tmp_path / "models.toml"
    path.write_text(f'[pairs.far]\ntarget = "t.gguf"\ndraft = "lookup"\n{lines}\n')
    return path


def test_what_is_read_is_what_is_written_down_again() -> None:
    assert to_placing(FULL) == PLACED
    assert to_placing_keys(PLACED) == FULL
    assert to_placing_keys(Placing()) == {}


def test_what_is_right_is_no_fault() -> None:
    assert list(faults(FULL)) == list(faults({"gpu_layers": -1, "device": "none", "rpc": "none"})) == []


def test_settings_are_flat_in_json_and_name_what_nobody_said() -> None:
    flat = to_flat(ModelSettings(threads=2, placing=PLACED))
    assert flat.items() >= {"threads": 2, **FULL}.items()
    assert flat.keys() == {each.name for each in fields(ModelSettings)} - {"placing"} | {*PLACING_KEYS}
    assert [to_flat(ModelSettings())[key] for key in PLACING_KEYS] == [None] * len(PLACING_KEYS)


def test_a_single_worker_or_device_needs_no_list() -> None:
    placing = to_placing({"rpc": "far", "device": "RPC0"})
    assert (placing.rpc, placing.target.device) == (("far:50052",), ("RPC0",))


def test_a_pair_carries_it_for_target_and_draft_apart(tmp_path: Path) -> None:
    path = written(tmp_path, 'rpc = "far:1"\ngpu_layers = 3\ndraft_gpu_layers = 0')
    assert find_pair("far", path).placing == Placing(("far:1",), ModelPlacing(gpu_layers=3), ModelPlacing(gpu_layers=0))
    assert find_pair("far", path, "none").placing == Placing(("far:1",), ModelPlacing(gpu_layers=3))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("rpc = 3", 'must be "HOST:PORT", or a list of them'),
        ("rpc = []", 'must be "HOST:PORT", or a list of them'),
        ('rpc = "far:0"', "is wrong: rpc far:0 has the port"),
        ("device = []", "must be a device, or a list of them"),
        ("draft_gpu_layers = -2", 'must be "auto" or a whole number from -1'),
        ('gpu_layers = "all"', 'must be "auto" or a whole number from -1'),
        ("tensor_split = [0, 0]", "must be a list of shares, numbers from 0 that are not all 0"),
        ("tensor_split = [true]", "must be a list of shares"),
        ("tensor_split = 1", "must be a list of shares"),
        ('draft_split_mode = "column"', "must be one of layer, none, row"),
        ("tensor_split = [inf]", "must be a list of shares"),
        ("tensor_split = [3, -1]", "must be a list of shares"),
        ('device = [""]', "must be a device, or a list of them"),
        ("gpu_layers = 2147483648", 'must be "auto" or a whole number from -1'),
        ("main_gpu = -1", "must be the number of a device, from 0"),
        ("main_gpu = true", "must be the number of a device, from 0"),
    ],
)
def test_what_it_must_not_say_is_told_with_its_line(tmp_path: Path, line: str, complaint: str) -> None:
    path = written(tmp_path, line)
    with pytest.raises(UsageError) as caught:
        find_pair("far", path)
    assert caught.value.message.startswith(f'{path}:4: "{line.split()[0]}" in [pairs.far] {complaint}')


def test_the_user_wins_and_shares_go_with_their_devices() -> None:
    pair = Placing(("far:1",), ModelPlacing(("RPC0",), 5, (1.0,), "row", 0), ModelPlacing(gpu_layers=0))
    assert Placing().over(pair) == pair
    layers = Placing(target=ModelPlacing(gpu_layers=2)).over(pair)
    assert layers.target == ModelPlacing(("RPC0",), 2, (1.0,), "row", 0)
    device = Placing(target=ModelPlacing(device=("CUDA0",))).over(pair)
    assert device.target == ModelPlacing(("CUDA0",), 5)


def test_other_workers_have_other_devices() -> None:
    pair = Placing(("far:1",), ModelPlacing(("RPC0",), 5))
    assert Placing(rpc=()).over(pair) == Placing(rpc=())
    local = Placing(None, ModelPlacing(("CUDA0",), 5))
    assert Placing(rpc=()).over(local) == local, "who wants no workers gets none, and all else of the pair"
    assert Placing(rpc=("far:1",)).over(pair) == pair
