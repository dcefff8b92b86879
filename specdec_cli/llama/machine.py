"""How much memory a model can have here."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Final

from specdec_cli.errors import ModelError
from specdec_cli.llama.library import ggml, llama

CPU, GPU = 0, 1
"""GGML_BACKEND_DEVICE_TYPE_CPU and _GPU; an integrated one, and Apple's, has no memory of its own."""
LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says what a container may use; in a container alone these are its own."""


@cache
def memory() -> int | None:
    """Bytes of memory of this machine, with that of its graphics cards; None if llama.cpp does not load."""
    try:
        llama()
    except ModelError:
        return None
    device = ggml("ggml_backend_dev_get", ctypes.c_void_p, (ctypes.c_size_t,))
    kind = ggml("ggml_backend_dev_type", ctypes.c_int, (ctypes.c_void_p,))
    devices = [device(index) for index in range(ggml("ggml_backend_dev_count", ctypes.c_size_t)())]
    main = sum(_total(each) for each in devices if kind(each) == CPU)
    cards = sum(_total(each) for each in devices if kind(each) == GPU and sys.platform != "darwin")
    return min([main, *(limit for limit in map(_limit, LIMITS) if limit)]) + cards


def _total(device: int) -> int:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    pointer = ctypes.POINTER(ctypes.c_size_t)
    ask = ggml("ggml_backend_dev_memory", None, (ctypes.c_void_p, pointer, pointer))
    ask(device, ctypes.byref(free), ctypes.byref(total))
    return total.value


def _limit(path: Path) -> int:
    """The limit that `path` holds; 0 if it holds none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
