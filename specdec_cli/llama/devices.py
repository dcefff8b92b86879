"""What there is to run on: processors that this process may use, and the accelerators that llama.cpp found."""

from __future__ import annotations

import ctypes
import os

from specdec_cli.llama.library import ggml, llama

GPU_TYPES = (1, 2)
"""GGML_BACKEND_DEVICE_TYPE_GPU and _IGPU."""


def usable_cpus() -> int:
    """CPUs that this process may run on: the default number of threads."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gpu_names() -> list[str]:
    """Names of the accelerators that layers can be put on, such as `CUDA0` or `Metal`; empty without one."""
    if not llama().llama_supports_gpu_offload():
        return []
    device = ggml("ggml_backend_dev_get", ctypes.c_void_p, (ctypes.c_size_t,))
    name = ggml("ggml_backend_dev_name", ctypes.c_char_p, (ctypes.c_void_p,))
    kind = ggml("ggml_backend_dev_type", ctypes.c_int, (ctypes.c_void_p,))
    devices = [device(index) for index in range(ggml("ggml_backend_dev_count", ctypes.c_size_t)())]
    return [name(each).decode() for each in devices if kind(each) in GPU_TYPES]
