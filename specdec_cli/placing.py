"""Where the models go: devices and layers for each, from what is asked for and the memory that is free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specdec_cli.catalog import Pair, parts_of
from specdec_cli.context_size import DEFAULT
from specdec_cli.core.draft_length import LONGEST
from specdec_cli.errors import UsageError
from specdec_cli.fitting import fit_layers, fit_shares, spread
from specdec_cli.llama.devices import Device
from specdec_cli.llama.layer_sizes import layer_bytes, read_layer_sizes
from specdec_cli.llama.placement import Placement, most_devices
from specdec_cli.settings import ModelPlacing, ModelSettings

MARGIN: Final = 512 * 2**20
"""Bytes left free on each device for what a pass computes."""
CPU: Final = "CPU"
NOWHERE: Final = ("none", "cpu")
"""What `--device` may say for the CPU alone."""
NAMES: Final = {
    "target": ("--device", "--tensor-split", "--split-mode", "--main-gpu"),
    "draft": ("--draft-device", "draft_tensor_split", "draft_split_mode", "draft_main_gpu"),
}
"""How the user says it for each role: the draft's shares, mode and main device are keys of a pair alone."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where both models go. `notice` says what was decided or has no effect, empty if that is no surprise."""

    target: Placement
    draft: Placement
    notice: str

    @property
    def shares_cpu(self) -> bool:
        """Whether the models take turns on this machine's CPU."""
        return self.target.on_cpu and self.draft.on_cpu


def make_plan(pair: Pair, settings: ModelSettings, devices: Sequence[Device]) -> Plan:
    """Fit the target into what is free of `devices`, then the draft into what is left, each with its cache.

    The target goes to the workers and GPUs, the workers first, which saves a transfer of the output; the draft to one
    local GPU, since its many short steps should pay no round trip. Layers that do not fit stay on the CPU.

    Raises:
        UsageError: a device is not there, or there are too many, or shares and devices do not match.
        ModelError: a file is not a model.
    """
    planner = _Planner(settings, devices)
    target = planner.place(pair.target, "target", settings.placing.target, _for_target(devices))
    draft = Placement()
    if pair.draft_model is not None:
        draft = planner.place(pair.draft_model, "draft", settings.placing.draft, planner.best_local())
    return Plan(target, draft, _to_notice(settings, target, draft if pair.draft_model else None, devices))


class _Planner:
    """Places one model after the other, and remembers how much room that leaves."""

    def __init__(self, settings: ModelSettings, devices: Sequence[Device]) -> None:
        self._settings = settings
        self._devices = devices
        here = max((each.free for each in devices if each.kind == CPU), default=0)
        # one that has no memory to tell of shares this machine's
        self._free = {each.name: max(each.free if each.total else here, 1) for each in devices}
        self._room = {name: free - MARGIN for name, free in self._free.items()}

    def best_local(self) -> tuple[Device, ...]:
        """The local GPU with the most room; none without one."""
        local = [each for each in _for_target(self._devices) if each.endpoint is None]
        return tuple(sorted(local, key=lambda each: -self._room[each.name])[:1])

    def place(self, path: Path, role: str, wanted: ModelPlacing, default: tuple[Device, ...]) -> Placement:
        """Where `path` goes; what it needs there is no longer free for the next one."""
        option, *_ = NAMES[role]
        devices = default if wanted.device is None else find_devices(wanted.device, self._devices, option)
        if not devices:
            return Placement()
        _check_devices(wanted, devices, role)
        mode, shares = wanted.split_mode or "layer", wanted.tensor_split
        if mode == "none":
            devices, shares = (devices[wanted.main_gpu or 0],), None
        needed = self._needed(path, role)
        count, devices, shares = self._without_cpu(devices, shares, len(needed), wanted)
        room = [self._room[each.name] for each in devices]
        if count is None:
            counts = fit_layers(needed, room) if shares is None else fit_shares(needed, room, shares)
        else:
            counts = spread(count, shares or [self._free[each.name] for each in devices])
        self._take(devices, needed, counts)
        return Placement(devices, counts, len(needed), mode)

    def _without_cpu(
        self, devices: tuple[Device, ...], shares: tuple[float, ...] | None, layers: int, wanted: ModelPlacing
    ) -> tuple[int | None, tuple[Device, ...], tuple[float, ...] | None]:
        """How many layers are asked off the CPU (None: as many as fit), and the other devices with their shares."""
        count = wanted.gpu_layers
        given = None if count is None or count == "auto" else layers if count == -1 else min(count, layers)
        if devices[0].kind != CPU:
            return given, devices, shares
        here = spread(layers, shares or [self._free[each.name] for each in devices])[0]
        return layers - here if given is None else given, devices[1:], None if shares is None else shares[1:]

    def _needed(self, path: Path, role: str) -> Sequence[int]:
        """Bytes of each layer with what it keeps, the output last."""
        settings, sizes = self._settings, read_layer_sizes(path, role, parts_of(path)[1:])
        trained = sizes.shapes[0].trained_context if sizes.shapes else 0
        size = min(DEFAULT, trained) if settings.ctx_size is None else settings.ctx_size or trained
        keys, values = settings.cache_type_k, settings.cache_type_v
        return layer_bytes(sizes, size, keys=keys, values=values, states=1 + LONGEST)

    def _take(self, devices: Sequence[Device], needed: Sequence[int], counts: Sequence[int]) -> None:
        first = len(needed) - sum(counts)
        for device, count in zip(devices, counts, strict=True):
            self._room[device.name] -= sum(needed[first : first + count])
            first += count


def find_devices(names: Sequence[str], devices: Sequence[Device], option: str) -> tuple[Device, ...]:
    """The devices of these names, or of the workers that are named; none for the CPU alone.

    Raises:
        UsageError: one is not there, or the CPU is not the first of several.
    """
    if len(names) == 1 and names[0].lower() in NOWHERE:
        return ()
    found: list[Device] = []
    for name in names:
        meant = [each for each in devices if name.lower() == each.name.lower() or name == each.endpoint]
        if not meant:
            known = ", ".join(_full_name(each) for each in devices)
            raise UsageError(f"{option} {name} is no device here", hint=f"there are {known}; see specdec doctor")
        found += meant
    if any(found.count(each) > 1 for each in found):
        raise UsageError(f"{option} {','.join(names)} names a device twice")
    if any(each.kind == CPU for each in found[1:]):
        raise UsageError(f"{option} {','.join(names)}: the CPU holds the first layers", hint="name it first")
    return tuple(found)


def _for_target(devices: Sequence[Device]) -> tuple[Device, ...]:
    """All workers, then the GPUs of one backend, for two would drive the same cards; integrated ones if alone."""
    remote = [each for each in devices if each.endpoint is not None]
    local = [each for each in devices if each.endpoint is None]
    gpus = [each for each in local if each.kind == "GPU"] or [each for each in local if each.kind == "integrated GPU"]
    return (*remote, *(each for each in gpus if each.backend == gpus[0].backend))


def _check_devices(wanted: ModelPlacing, devices: Sequence[Device], role: str) -> None:
    of_devices, of_shares, of_mode, of_main = NAMES[role]
    if len(devices) > most_devices():
        message = f"{len(devices)} devices for the {role}: llama.cpp takes {most_devices()}"
        raise UsageError(message, hint=f"name fewer by {of_devices}")
    names = ", ".join(each.name for each in devices)
    if wanted.tensor_split is not None and len(wanted.tensor_split) != len(devices):
        given = ",".join(f"{each:g}" for each in wanted.tensor_split)
        message = f"{of_shares} {given} is not one share each for {names}"
        raise UsageError(message, hint=f"one share for each, or others by {of_devices}")
    if wanted.main_gpu is not None and wanted.main_gpu >= len(devices):
        message = f"{of_main} {wanted.main_gpu} is none of {names}, counted from 0"
        raise UsageError(message, hint=f"{of_devices} names others")
    lent = [each.name for each in devices if each.endpoint is not None]
    if wanted.split_mode == "row" and lent:
        message = f"{of_mode} row splits matrices between GPUs here, and {', '.join(lent)} is lent by a worker"
        raise UsageError(message, hint=f"{of_mode} layer, or {of_devices} with GPUs of this machine alone")


def _to_notice(settings: ModelSettings, target: Placement, draft: Placement | None, devices: Sequence[Device]) -> str:
    """What was decided, if it was asked for or is less than everything; or what has no effect without a GPU."""
    placing = settings.placing
    if not _for_target(devices):
        asked = [each for each in (placing.target, placing.draft) if each.gpu_layers not in (None, 0, "auto")]
        return "no GPU that llama.cpp can use: --gpu-layers has no effect" if asked else ""
    placed = [("target", target, placing.target)] + ([] if draft is None else [("draft", draft, placing.draft)])
    is_asked = bool(placing.rpc) or any(wanted.gpu_layers == "auto" for _, _, wanted in placed)
    is_less = any(each.devices and each.on_cpu and wanted.gpu_layers is None for _, each, wanted in placed)
    return "; ".join(f"{role} {in_words(each)}" for role, each, _ in placed) if is_asked or is_less else ""


def in_words(placement: Placement) -> str:
    """How many layers are where, such as `20 of 29 layers on CUDA0, 9 on the CPU`."""
    if not placement.used:
        return "on the CPU"
    (first, count), *others = placement.held
    parts = [f"{count} of {placement.layers} layers on {_full_name(first)}"]
    parts += [f"{count} on {_full_name(device)}" for device, count in others]
    rest = placement.layers - placement.gpu_layers
    return ", ".join([*parts, *([f"{rest} on the CPU"] if rest else [])])


def _full_name(device: Device) -> str:
    return device.name if device.endpoint is None else f"{device.name} ({device.endpoint})"
