"""Where the models go, on machines that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.errors import UsageError
from specdec_cli.llama.devices import Device
from specdec_cli.llama.layer_sizes import read_layer_sizes
from specdec_cli.placing import MARGIN, Plan, find_devices, in_words, make_plan
from specdec_cli.settings import ModelPlacing, ModelSettings, Placing
from tests.toy_gguf import attention_toy

HUGE = 2**40
CPU = Device("CPU", "a processor", "CPU", "CPU", HUGE, HUGE)
CUDA0 = Device("CUDA0", "a card", "GPU", "CUDA", HUGE, HUGE)
CUDA1 = replace(CUDA0, name="CUDA1", free=HUGE // 2)
VULKAN = replace(CUDA0, name="Vulkan0", backend="Vulkan")
INTEGRATED = Device("Vulkan1", "a chip", "integrated GPU", "Vulkan", HUGE, HUGE)
RPC0 = Device("RPC0", "far:1", "GPU", "RPC", HUGE, HUGE, endpoint="far:1")
RPC1 = Device("RPC1", "far:2", "GPU", "RPC", HUGE, HUGE, endpoint="far:2")


def plan(pair: Pair, devices: Sequence[Device], rpc: tuple[str, ...] | None = None, **target: Any) -> Plan:
    settings = ModelSettings(ctx_size=256, placing=Placing(rpc, ModelPlacing(**target)))
    return make_plan(pair, settings, devices)


def names(devices: Sequence[Device]) -> list[str]:
    return [each.name for each in devices]


def bytes_of(path: Path) -> int:
    sizes = read_layer_sizes(path, "target")
    return sum(sizes.layers) + sizes.output


def test_without_an_accelerator_both_are_on_the_cpu_and_nothing_is_said(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CPU])
    assert (planned.target.name, planned.draft.name, planned.notice) == ("CPU", "CPU", "")
    assert planned.shares_cpu


@pytest.mark.parametrize("layers", [1, -1])
def test_layers_without_an_accelerator_are_one_notice(attention_pair: Pair, layers: int) -> None:
    assert plan(attention_pair, [CPU], gpu_layers=layers).notice == (
        "no GPU that llama.cpp can use: --gpu-layers has no effect"
    )
    assert (
        plan(attention_pair, [CPU], gpu_layers=0).notice == plan(attention_pair, [CPU], gpu_layers="auto").notice == ""
    )


def test_with_a_gpu_both_are_on_it_whole(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CPU, CUDA0])
    assert (planned.target.name, planned.draft.name, planned.notice) == ("CUDA0", "CUDA0", "")
    assert planned.target.gpu_layers == planned.target.layers == 3
    assert not planned.shares_cpu


def test_the_target_goes_to_workers_and_gpus_and_the_draft_stays_on_the_roomiest_gpu_here(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CPU, CUDA1, CUDA0, RPC0], rpc=("far:1",))
    assert names(planned.target.devices) == ["RPC0", "CUDA1", "CUDA0"]
    assert names(planned.draft.devices) == ["CUDA0"]
    planned = plan(attention_pair, [CPU, RPC0], rpc=("far:1",))
    assert (planned.target.name, planned.draft.name) == ("RPC0", "CPU")
    assert planned.notice == "target 3 of 3 layers on RPC0 (far:1); draft on the CPU"


def test_two_backends_of_one_card_are_not_two_cards_and_a_chip_counts_where_there_is_no_card(
    attention_pair: Pair,
) -> None:
    assert names(plan(attention_pair, [CUDA0, VULKAN, INTEGRATED, CPU]).target.devices) == ["CUDA0"]
    assert names(plan(attention_pair, [INTEGRATED, CPU]).target.devices) == ["Vulkan1"]


def test_what_does_not_fit_stays_on_the_cpu_and_that_is_said(tmp_path: Path) -> None:
    pair = Pair(attention_toy(3.0).write(tmp_path / "target.gguf"), "none")
    sizes = read_layer_sizes(pair.target, "target")
    room = MARGIN + sizes.output + sizes.layers[-1] * 3 // 2 + 2 * 256 * 2 * 64
    planned = plan(pair, [CPU, replace(CUDA0, free=room)])
    assert (planned.target.gpu_layers, planned.target.name) == (2, "CPU+CUDA0")
    assert planned.notice == "target 2 of 3 layers on CUDA0, 1 on the CPU"
    assert plan(pair, [CPU, replace(CUDA0, free=MARGIN)]).target.name == "CPU"
    assert plan(pair, [CPU, replace(CUDA0, free=room)], gpu_layers=3).target.name == "CUDA0", "who says so gets it"


def test_the_target_is_fitted_first_and_the_draft_into_what_is_left(tmp_path: Path) -> None:
    same = attention_toy(3.0).write(tmp_path / "model.gguf")
    caches = 2 * 256 * 2 * 64 * 2
    card = replace(CUDA0, free=MARGIN + bytes_of(same) + caches)
    planned = plan(Pair(same, same), [CPU, card])
    assert planned.target.name == "CUDA0"
    assert planned.draft.on_cpu
    twice = replace(CUDA0, free=MARGIN + 2 * (bytes_of(same) + caches))
    assert plan(Pair(same, same), [CPU, twice]).draft.name == "CUDA0"


def test_shares_divide_the_layers_as_they_say(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CPU, RPC0, RPC1], rpc=("far:1", "far:2"), tensor_split=(1.0, 2.0))
    assert planned.target.split == (1, 2)
    assert planned.notice.startswith("target 1 of 3 layers on RPC0 (far:1), 2 on RPC1 (far:2)")


def test_the_cpu_takes_its_share_where_it_is_named_first(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CPU, RPC0], device=("CPU", "RPC0"), tensor_split=(2.0, 1.0))
    assert (planned.target.gpu_layers, planned.target.name) == (1, "CPU+RPC0")
    planned = plan(attention_pair, [replace(CPU, free=2 * HUGE), RPC0], device=("cpu", "far:1"))
    assert planned.target.gpu_layers == 1, "by free memory, where no shares are given"


def test_one_device_can_take_all(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CUDA0, CUDA1, CPU], split_mode="none", main_gpu=1)
    assert planned.target.name == "CUDA1"
    assert planned.target.devices == (CUDA1,)


@pytest.mark.parametrize("name", ["none", "CPU", "cpu"])
def test_a_model_can_be_kept_off_every_device(attention_pair: Pair, name: str) -> None:
    assert plan(attention_pair, [CPU, CUDA0], device=(name,)).target.name == "CPU"


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ({"device": ("CUDA7",)}, "--device CUDA7 is no device here"),
        ({"device": ("RPC0", "far:1")}, "--device RPC0,far:1 names a device twice"),
        ({"device": ("CUDA0", "CPU")}, "--device CUDA0,CPU: the CPU holds the first layers"),
        ({"tensor_split": (1.0,)}, "--tensor-split 1 has 1 shares for 2 devices: RPC0, CUDA0"),
        ({"main_gpu": 2}, "--main-gpu 2 is not one of the 2 devices, from 0: RPC0, CUDA0"),
    ],
)
def test_devices_that_are_not_there_are_one_line(attention_pair: Pair, wanted: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(attention_pair, [CPU, CUDA0, RPC0], **wanted)
    assert caught.value.message == complaint


def test_an_unknown_device_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        find_devices(("x",), [CPU, RPC0], "--draft-device")
    assert caught.value.hint == "there are CPU, RPC0 (far:1); see specdec doctor"


def test_a_draft_can_be_placed_by_hand(attention_pair: Pair) -> None:
    settings = ModelSettings(placing=Placing(None, ModelPlacing(), ModelPlacing(device=("far:1",), gpu_layers=1)))
    planned = make_plan(attention_pair, settings, [CPU, RPC0])
    assert (planned.draft.gpu_layers, in_words(planned.draft)) == (1, "1 of 3 layers on RPC0 (far:1), 2 on the CPU")
