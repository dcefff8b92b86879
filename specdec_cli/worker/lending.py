"""Which of this machine's devices a worker lends, and how they are called."""

from __future__ import annotations

from collections.abc import Sequence

from specdec_cli.errors import UsageError
from specdec_cli.llama.devices import GPU_KINDS, Device, devices
from specdec_cli.pairs.check import gigabytes


def choose_devices(names: Sequence[str]) -> list[Device]:
    """The devices of these `names`, or without any all that layers are best put on: accelerators, or else the CPU.

    Raises:
        UsageError: this machine has no such device.
        ModelError: llama.cpp does not load.
    """
    there = {device.name: device for device in devices()}
    for name in names:
        if name not in there:
            known = ", ".join(there)
            raise UsageError(f'--device "{name}" is not a device of this machine', hint=f"there are: {known}")
    if names:
        return [there[name] for name in names]
    accelerators = [device for device in there.values() if device.kind in GPU_KINDS]
    return accelerators or [device for device in there.values() if device.kind == "CPU"]


def describe(device: Device) -> str:
    """A device with its memory; of a CPU all of it is told to be free."""
    room = gigabytes(device.total)
    if device.kind != "CPU":
        room = f"{gigabytes(device.free)} of {room} free"
    return f"{device.name}: {device.description}, {room}"
