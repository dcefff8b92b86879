"""Where a model's layers go, and how llama.cpp is told."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

from specdec_cli.llama.devices import Device
from specdec_cli.llama.library import llama

MODES: Final = {"none": 0, "layer": 1, "row": 2}
"""Of llama.cpp, by the names of `specdec_cli.settings.SPLIT_MODES`."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How many of a model's `layers`, the output being the last one, each of `devices` holds, by `split`.

    They hold the last ones, in order; the first ones are on the CPU.
    """

    devices: tuple[Device, ...] = ()
    split: tuple[int, ...] = ()
    layers: int = 0
    mode: str = "layer"

    @property
    def gpu_layers(self) -> int:
        """How many are on devices."""
        return sum(self.split)

    @property
    def held(self) -> tuple[tuple[Device, int], ...]:
        """The devices that hold anything, each with its number of layers."""
        return tuple((device, count) for device, count in zip(self.devices, self.split, strict=True) if count)

    @property
    def used(self) -> tuple[Device, ...]:
        """The devices that hold anything."""
        return tuple(device for device, _ in self.held)

    @property
    def on_cpu(self) -> bool:
        """Whether any layer is on this machine's CPU."""
        return self.gpu_layers < self.layers or not self.used

    @property
    def is_remote(self) -> bool:
        """Whether a worker holds anything."""
        return any(each.endpoint is not None for each in self.used)

    @property
    def name(self) -> str:
        """Where it is, such as `CPU`, `CUDA0` or `CPU+RPC0`."""
        return "+".join([*(["CPU"] if self.on_cpu else []), *(each.name for each in self.used)])


def most_devices() -> int:
    """How many devices llama.cpp takes for a model."""
    most: int = llama().llama_max_devices()
    return most


def place(params: Any, placement: Placement) -> object:
    """Let llama.cpp's parameters of a model say `placement`. What is returned must live until the model is loaded."""
    devices = (ctypes.c_void_p * (len(placement.devices) + 1))(*(each.pointer for each in placement.devices), None)
    split = (ctypes.c_float * most_devices())(*placement.split)
    params.devices = ctypes.addressof(devices)
    params.n_gpu_layers = placement.gpu_layers
    params.split_mode = MODES[placement.mode]
    params.main_gpu = 0  # with the mode "none" there is only this one
    params.tensor_split = ctypes.cast(split, ctypes.POINTER(ctypes.c_float))
    return devices, split
