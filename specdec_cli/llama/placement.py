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
    """The last `gpu_layers` of all `layers`, the output being the last one, are on `devices`, the others on the CPU.

    `split` are the shares of the devices. `main` is the one that gathers where `mode` is to split rows.
    """

    devices: tuple[Device, ...] = ()
    gpu_layers: int = 0
    layers: int = 0
    split: tuple[float, ...] = ()
    mode: str = "layer"
    main: int = 0

    @property
    def used(self) -> tuple[Device, ...]:
        """The devices that hold anything."""
        if not self.gpu_layers:
            return ()
        return tuple(each for each, share in zip(self.devices, self.split, strict=True) if share)

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


def place(params: Any, placement: Placement) -> object:
    """Let llama.cpp's parameters of a model say `placement`. What is returned must live until the model is loaded."""
    devices = (ctypes.c_void_p * (len(placement.devices) + 1))(*(each.pointer for each in placement.devices), None)
    split = (ctypes.c_float * llama().llama_max_devices())(*placement.split)
    params.devices = ctypes.addressof(devices)
    params.n_gpu_layers = placement.gpu_layers
    params.split_mode = MODES[placement.mode]
    params.main_gpu = placement.main
    params.tensor_split = ctypes.cast(split, ctypes.POINTER(ctypes.c_float))
    return devices, split
