"""The processor, the memory and the graphics cards of this machine, as the system tells, whatever llama.cpp sees."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specdec_cli.llama.devices import cpu_quota, usable_cpus
from specdec_cli.llama.machine import memory

FEATURES: Final = {
    "SSE3": "pni",
    "SSSE3": "ssse3",
    "AVX": "avx",
    "AVX_VNNI": "avx_vnni",
    "AVX2": "avx2",
    "F16C": "f16c",
    "FMA": "fma",
    "BMI2": "bmi2",
    "AVX512": "avx512f",
    "AVX512_VBMI": "avx512vbmi",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512_BF16": "avx512_bf16",
    "AMX_INT8": "amx_int8",
    "NEON": "asimd",
    "DOTPROD": "asimddp",
    "MATMUL_INT8": "i8mm",
    "SVE": "sve",
}
"""Instructions that llama.cpp has kernels for, by its names, and what Linux calls them."""
CPUINFO: Final = Path("/proc/cpuinfo")
MEMINFO: Final = Path("/proc/meminfo")
CARDS: Final = {"NVIDIA": Path("/proc/driver/nvidia/version"), "AMD": Path("/dev/kfd")}
"""What Linux has where the driver of a graphics card that can compute is loaded."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """`features` are those of `FEATURES` that the CPU has, None where the system does not tell. Memory is in bytes.

    `quota` is how many CPUs' time this process gets, None without a limit. `card` names a maker, empty for none seen.
    """

    cpu: str
    cores: int | None
    usable: int
    quota: float | None
    features: frozenset[str] | None
    memory: int | None
    available: int | None
    card: str


def read_hardware(*, loads: bool) -> Hardware:
    """What there is; the memory of the machine only if llama.cpp `loads`."""
    model, features = _read_cpu()
    return Hardware(
        cpu=model or platform.processor() or platform.machine(),
        cores=os.cpu_count(),
        usable=usable_cpus(),
        quota=cpu_quota(),
        features=features,
        memory=memory() if loads else None,
        available=_read_available(),
        card=_find_card(),
    )


def _read_cpu() -> tuple[str, frozenset[str] | None]:
    """Model and features of the first processor, by Linux."""
    text = _read(CPUINFO)
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    if flags is None:
        return "", None
    known = set(flags[1].split())
    return model[1].strip() if model else "", frozenset(ours for ours, theirs in FEATURES.items() if theirs in known)


def _read_available() -> int | None:
    """Bytes that programs can still have, by Linux."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", _read(MEMINFO), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _find_card() -> str:
    if sys.platform == "darwin" and platform.machine() == "arm64":
        return "Apple"
    seen = next((maker for maker, sign in CARDS.items() if sign.exists()), "")
    return seen or ("NVIDIA" if shutil.which("nvidia-smi") else "")


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
