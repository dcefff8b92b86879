"""What there is to run on: processors that this process may use, and the devices that llama.cpp found."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from specdec_cli.llama.library import ggml, llama

KINDS: Final = ("CPU", "GPU", "integrated GPU", "accelerator")
"""What ggml's types of devices are, in their order."""
GPU_KINDS: Final = KINDS[1:3]
"""Those that layers are put on before the CPU."""
CGROUPS: Final = Path("/sys/fs/cgroup")
OWN_CGROUP: Final = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Device:
    """A device with its `kind`, one of `KINDS`, the backend that drives it, and its bytes of memory.

    Of a CPU all memory is told to be free, except on Windows. `endpoint` is the worker that lends it, None for a local
    one; `pointer` is ggml's.
    """

    name: str
    description: str
    kind: str
    backend: str
    free: int
    total: int
    endpoint: str | None = None
    pointer: int = field(default=0, repr=False, compare=False)


def usable_cpus() -> int:
    """CPUs that this process may run on: the default number of threads."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_quota() -> float | None:
    """How many CPUs' time the control groups of this process leave it; None where nothing limits it."""
    quotas = [quota for group in _cgroups() if (quota := _quota(group)) is not None]
    return min(quotas, default=None)


def devices() -> list[Device]:
    """All devices, with the memory that each has free now.

    Raises:
        ModelError: llama.cpp does not load.
    """
    llama()
    device = ggml("ggml_backend_dev_get", ctypes.c_void_p, (ctypes.c_size_t,))
    return [describe(device(index)) for index in range(ggml("ggml_backend_dev_count", ctypes.c_size_t)())]


def describe(device: int, endpoint: str | None = None) -> Device:
    """The device behind ggml's pointer, lent by the worker at `endpoint` if that is given."""
    kind = ggml("ggml_backend_dev_type", ctypes.c_int, (ctypes.c_void_p,))(device)
    registry = ggml("ggml_backend_dev_backend_reg", ctypes.c_void_p, (ctypes.c_void_p,))(device)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    pointer = ctypes.POINTER(ctypes.c_size_t)
    ask = ggml("ggml_backend_dev_memory", None, (ctypes.c_void_p, pointer, pointer))
    ask(device, ctypes.byref(free), ctypes.byref(total))
    return Device(
        name=_text("ggml_backend_dev_name", device),
        description=_text("ggml_backend_dev_description", device),
        kind=KINDS[kind] if kind < len(KINDS) else KINDS[-1],
        backend=_text("ggml_backend_reg_name", registry),
        free=free.value,
        total=total.value,
        endpoint=endpoint,
        pointer=device,
    )


def _text(function: str, subject: int) -> str:
    told: bytes | None = ggml(function, ctypes.c_char_p, (ctypes.c_void_p,))(subject)
    return " ".join((told or b"").decode("utf-8", "replace").split())


def _cgroups() -> Sequence[Path]:
    """The folders of this process's control groups and of those around them, of both kinds that Linux has."""
    try:
        lines = [line.split(":", 2) for line in OWN_CGROUP.read_text().splitlines()]
    except (OSError, ValueError):
        lines = []
    folders = {CGROUPS, CGROUPS / "cpu"}
    for _, controllers, place in (line for line in lines if len(line) == 3):
        if not controllers or "cpu" in controllers.split(","):
            root = CGROUPS / "cpu" if controllers else CGROUPS
            own = root / place.lstrip("/")
            folders |= {own, *(each for each in own.parents if root in each.parents)}
    return sorted(folders)


def _quota(group: Path) -> float | None:
    """CPUs' time by `cpu.max` or the two files that it replaced; None for no limit."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = " ".join((group / name).read_text() for name in names).split()
            if int(quota) > 0:
                return int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):  # not there, or `max`
            continue
    return None
