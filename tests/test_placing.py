"""Where the models go, on machines that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.draft_length import LONGEST
from specdec_cli.errors import UsageError
from specdec_cli.llama.devices import Device
from specdec_cli.llama.layer_sizes import read_layer_sizes
from specdec_cli.placing import Plan, find_devices, in_words, make_plan
from specdec_cli.settings import SPLIT_MODES, ModelPlacing, ModelSettings, Placing
from tests.toy_gguf import attention_toy
from tests.toy_kinds import kind_toy

HUGE = 2**40
MARGIN = 512 * 2**20
"""What stays free on each device."""
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


def cache_of(tokens: int, *, bits: float = 16) -> int:
    """Bytes of the cache of the toy with attention, keys and values on average of so many bits."""
    return int(tokens * 2 * 2 * 64 * bits / 8)


def test_without_an_accelerator_both_are_on_the_cpu_and_nothing_is_said(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CPU])
    assert (planned.target.name, planned.draft.name, planned.notice) == ("CPU", "CPU", "")
    assert planned.shares_cpu


@pytest.mark.parametrize("layers", [1, -1])
def test_layers_without_an_accelerator_are_one_notice(attention_pair: Pair, layers: int) -> None:
    assert plan(attention_pair, [CPU], gpu_layers=layers).notice == (
        "no GPU that llama.cpp can use: --gpu-layers has no effect"
    )
    for harmless in (0, "auto"):
        assert plan(attention_pair, [CPU], gpu_layers=harmless).notice == ""
    of_draft = ModelSettings(placing=Placing(draft=ModelPlacing(gpu_layers=layers)))
    assert make_plan(attention_pair, of_draft, [CPU]).notice.startswith("no GPU")


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
    assert not planned.shares_cpu
    assert planned.notice == "target 3 of 3 layers on RPC0 (far:1); draft on the CPU"


def test_two_backends_of_one_card_are_not_two_cards_and_a_chip_counts_where_there_is_no_card(
    attention_pair: Pair,
) -> None:
    assert names(plan(attention_pair, [CUDA0, VULKAN, INTEGRATED, CPU]).target.devices) == ["CUDA0"]
    chip = replace(INTEGRATED, backend="CUDA")
    assert names(plan(attention_pair, [chip, CUDA0, CPU]).target.devices) == ["CUDA0"]
    assert names(plan(attention_pair, [INTEGRATED, CPU]).target.devices) == ["Vulkan1"]


def test_what_does_not_fit_stays_on_the_cpu_and_that_is_said(tmp_path: Path) -> None:
    pair = Pair(attention_toy(3.0).write(tmp_path / "target.gguf"), "none")
    sizes = read_layer_sizes(pair.target, "target")
    room = MARGIN + sizes.output + sizes.layers[-1] * 3 // 2 + cache_of(256)
    planned = plan(pair, [CPU, replace(CUDA0, free=room)])
    assert (planned.target.gpu_layers, planned.target.name) == (2, "CPU+CUDA0")
    assert planned.notice == "target 2 of 3 layers on CUDA0, 1 on the CPU"
    assert plan(pair, [CPU, replace(CUDA0, free=MARGIN)]).target.name == "CPU"
    for every in (3, -1, 99):
        asked = plan(pair, [CPU, replace(CUDA0, free=room)], gpu_layers=every)
        assert (asked.target.split, asked.notice) == ((3,), ""), "who says so gets it"
    assert plan(pair, [CPU, CUDA0], gpu_layers=1).notice == ""


def test_what_was_fitted_is_said_to_who_asked_for_that(attention_pair: Pair) -> None:
    assert plan(attention_pair, [CPU, CUDA0], gpu_layers="auto").notice == (
        "target 3 of 3 layers on CUDA0; draft 3 of 3 layers on CUDA0"
    )


@pytest.mark.parametrize(
    ("trained", "settings", "cache"),
    [
        (2048, {}, cache_of(2048)),
        (9000, {}, cache_of(4096)),
        (9000, {"ctx_size": 0}, cache_of(9216)),
        (9000, {"ctx_size": 512}, cache_of(512)),
        (2048, {"ctx_size": 256, "cache_type_k": "q8_0"}, cache_of(256, bits=(8.5 + 16) / 2)),
        (2048, {"ctx_size": 256, "cache_type_v": "f32"}, cache_of(256, bits=(16 + 32) / 2)),
        (2048, {"ctx_size": 256, "cache_type_k": "f32", "cache_type_v": "q8_0"}, cache_of(256, bits=(32 + 8.5) / 2)),
    ],
)
def test_the_cache_has_room_too(tmp_path: Path, trained: int, settings: dict[str, Any], cache: int) -> None:
    path = attention_toy().having({"llama.context_length": trained}).write(tmp_path / "model.gguf")
    enough = MARGIN + bytes_of(path) + cache
    for free, layers in ((enough, 3), (enough - 1, 2)):
        planned = make_plan(Pair(path, "none"), ModelSettings(**settings), [CPU, replace(CUDA0, free=free)])
        assert planned.target.gpu_layers == layers


def test_states_of_the_past_have_room_too(tmp_path: Path) -> None:
    path = kind_toy("mamba").write(tmp_path / "model.gguf")
    shapes = read_layer_sizes(path, "target").shapes
    enough = MARGIN + bytes_of(path) + sum(shape.state for shape in shapes) * 4 * (1 + LONGEST)
    for free, layers in ((enough, 3), (enough - 1, 2)):
        assert plan(Pair(path, "none"), [CPU, replace(CUDA0, free=free)]).target.gpu_layers == layers


def test_later_parts_of_a_file_have_layers_too(tmp_path: Path) -> None:
    toy = attention_toy()
    for number in (0, 1):
        inside = {name: each for name, each in toy.tensors.items() if (".1." in name) == bool(number)}
        part = replace(toy, tensors=inside).having({"split.no": np.uint16(number), "split.count": np.uint16(2)})
        part.write(tmp_path / f"model-{number + 1:05}-of-00002.gguf")
    enough = MARGIN + bytes_of(toy.write(tmp_path / "whole.gguf")) + cache_of(256)
    pair = Pair(tmp_path / "model-00001-of-00002.gguf", "none")
    for free, layers in ((enough, 3), (enough - 1, 2)):
        assert plan(pair, [CPU, replace(CUDA0, free=free)]).target.gpu_layers == layers


def test_a_model_without_layers_has_an_output_to_place(tmp_path: Path) -> None:
    path = attention_toy().having({"llama.block_count": 0}).write(tmp_path / "model.gguf")
    assert in_words(plan(Pair(path, "none"), [CPU, CUDA0]).target) == "1 of 1 layers on CUDA0"


def test_a_device_that_tells_of_no_memory_has_that_of_this_machine(attention_pair: Pair) -> None:
    silent = replace(CUDA0, free=0, total=0)
    assert plan(attention_pair, [CPU, silent]).target.name == "CUDA0"
    full = [replace(CPU, free=MARGIN), silent, CUDA1]
    assert plan(attention_pair, full, device=("CUDA0",)).target.name == "CPU"


def test_the_target_is_fitted_first_and_the_draft_into_what_is_left(tmp_path: Path) -> None:
    same = attention_toy(3.0).write(tmp_path / "model.gguf")
    caches = cache_of(256)
    card = replace(CUDA0, free=MARGIN + bytes_of(same) + caches)
    planned = plan(Pair(same, same), [CPU, card])
    assert planned.target.name == "CUDA0"
    assert planned.draft.on_cpu
    twice = replace(CUDA0, free=MARGIN + 2 * (bytes_of(same) + caches))
    assert plan(Pair(same, same), [CPU, twice]).draft.name == "CUDA0"
    smaller = replace(CUDA1, free=card.free - 1)
    assert plan(Pair(same, same), [CPU, card, smaller], device=("CUDA0",)).draft.name == "CPU+CUDA1"


@pytest.mark.parametrize(
    ("shares", "layers", "taken"),
    [
        ((1.0, 2.0), None, slice(1, 3)),
        ((1.0, 0.0), None, slice(0)),
        ((0.0, 1.0), 2, slice(1, 3)),
        ((0.0, 1.0), 1, slice(2, 3)),
    ],
)
def test_each_device_has_left_what_the_target_does_not_hold_there(
    tmp_path: Path, shares: tuple[float, float], layers: int | None, taken: slice
) -> None:
    path = attention_toy(3.0).write(tmp_path / "model.gguf")
    sizes = read_layer_sizes(path, "target")
    each = [*(size + cache_of(256) // 2 for size in sizes.layers), sizes.output]
    enough = MARGIN + sum(each[taken]) + sum(each)
    placing = Placing(None, ModelPlacing(("CUDA0", "CUDA1"), layers, shares), ModelPlacing(("CUDA1",)))
    for free, held in ((enough, 3), (enough - 1, 2)):
        devices = [CPU, CUDA0, replace(CUDA1, free=free)]
        planned = make_plan(Pair(path, path), ModelSettings(ctx_size=256, placing=placing), devices)
        assert planned.draft.gpu_layers == held


def test_shares_divide_the_layers_as_they_say(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CPU, RPC0, RPC1], rpc=("far:1", "far:2"), tensor_split=(1.0, 2.0))
    assert planned.target.split == (1, 2)
    assert planned.notice.startswith("target 1 of 3 layers on RPC0 (far:1), 2 on RPC1 (far:2)")
    for layers in (None, 3):
        shared = plan(attention_pair, [CPU, RPC0, RPC1], tensor_split=(2.0, 1.0), gpu_layers=layers)
        assert shared.target.split == (2, 1)
    roomy = replace(CUDA0, name="CUDA9", free=4 * HUGE)
    assert plan(attention_pair, [CPU, roomy, CUDA0], gpu_layers=3).target.split == (3, 0), "by free memory"
    full = [replace(each, free=0) for each in (CUDA0, CUDA1)]
    assert plan(attention_pair, [CPU, *full], gpu_layers=3).target.split == (2, 1), "all alike"


def test_the_cpu_takes_its_share_where_it_is_named_first(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CPU, RPC0], device=("CPU", "RPC0"), tensor_split=(2.0, 1.0))
    assert (planned.target.gpu_layers, planned.target.name) == (1, "CPU+RPC0")
    planned = plan(attention_pair, [replace(CPU, free=2 * HUGE), RPC0], device=("cpu", "far:1"))
    assert planned.target.gpu_layers == 1, "by free memory, where no shares are given"
    planned = plan(attention_pair, [replace(CPU, free=HUGE // 8), RPC0], device=("cpu", "far:1"))
    assert planned.target.gpu_layers == 2
    three: dict[str, Any] = {"device": ("CPU", "RPC0", "RPC1"), "tensor_split": (2.0, 0.0, 1.0)}
    assert plan(attention_pair, [CPU, RPC0, RPC1], **three).target.split == (0, 1)
    assert plan(attention_pair, [CPU, RPC0, RPC1], gpu_layers=3, **three).target.split == (0, 3)


def test_one_device_can_take_all(attention_pair: Pair) -> None:
    planned = plan(attention_pair, [CUDA0, CUDA1, CPU], split_mode="none", main_gpu=1, tensor_split=(1.0, 0.0))
    assert planned.target.name == "CUDA1"
    assert planned.target.devices == (CUDA1,)
    assert plan(attention_pair, [CUDA0, CUDA1, CPU], split_mode="none").target.devices == (CUDA0,)


@pytest.mark.parametrize("mode", SPLIT_MODES)
def test_llama_cpp_gets_the_mode_that_was_asked_for(attention_pair: Pair, mode: str) -> None:
    assert plan(attention_pair, [CUDA0, CUDA1, CPU], split_mode=mode).target.mode == mode


@pytest.mark.parametrize("name", ["none", "None", "CPU", "cpu"])
def test_a_model_can_be_kept_off_every_device(attention_pair: Pair, name: str) -> None:
    planned = plan(Pair(attention_pair.target, "none"), [CPU, CUDA0], device=(name,))
    assert (planned.target.name, planned.target.devices, planned.notice) == ("CPU", (), "")


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ({"device": ("CUDA7",)}, "--device CUDA7 is no device here"),
        ({"device": ("RPC0", "far:1")}, "--device RPC0,far:1 names a device twice"),
        ({"device": ("CUDA0", "CPU")}, "--device CUDA0,CPU: the CPU holds the first layers"),
        ({"tensor_split": (1.0,)}, "--tensor-split 1 is not one share each for RPC0, CUDA0"),
        ({"split_mode": "row"}, "--split-mode row splits matrices between GPUs here, and RPC0 is lent by a worker"),
        ({"main_gpu": 2}, "--main-gpu 2 is none of RPC0, CUDA0, counted from 0"),
    ],
)
def test_devices_that_are_not_there_are_one_line(attention_pair: Pair, wanted: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(attention_pair, [CPU, CUDA0, RPC0], **wanted)
    assert caught.value.message == complaint


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ({"device": ("CUDA7",)}, "--draft-device CUDA7 is no device here"),
        ({"tensor_split": (1.0, 2.5)}, "draft_tensor_split 1,2.5 is not one share each for CUDA0"),
        (
            {"device": ("RPC0",), "split_mode": "row"},
            "draft_split_mode row splits matrices between GPUs here, and RPC0 is lent by a worker",
        ),
        ({"main_gpu": 1}, "draft_main_gpu 1 is none of CUDA0, counted from 0"),
    ],
)
def test_a_complaint_about_the_draft_says_so(attention_pair: Pair, wanted: dict[str, Any], complaint: str) -> None:
    settings = ModelSettings(placing=Placing(draft=ModelPlacing(**wanted)))
    with pytest.raises(UsageError) as caught:
        make_plan(attention_pair, settings, [CPU, CUDA0, RPC0])
    assert caught.value.message == complaint


def test_more_devices_than_llama_cpp_takes_are_refused(attention_pair: Pair) -> None:
    cards = [replace(CUDA0, name=f"CUDA{number}") for number in range(17)]
    assert plan(attention_pair, [CPU, *cards[:16]]).target.gpu_layers == 3
    with pytest.raises(UsageError, match=r"^17 devices for the target: llama\.cpp takes 16$") as caught:
        plan(attention_pair, [CPU, *cards])
    assert caught.value.hint == "name fewer by --device"


def test_an_unknown_device_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        find_devices(("x",), [CPU, RPC0], "--draft-device")
    assert caught.value.hint == "there are CPU, RPC0 (far:1); see specdec doctor"


def test_a_draft_can_be_placed_by_hand(attention_pair: Pair) -> None:
    settings = ModelSettings(placing=Placing(None, ModelPlacing(), ModelPlacing(device=("far:1",), gpu_layers=1)))
    planned = make_plan(attention_pair, settings, [CPU, RPC0])
    assert (planned.draft.gpu_layers, in_words(planned.draft)) == (1, "1 of 3 layers on RPC0 (far:1), 2 on the CPU")
