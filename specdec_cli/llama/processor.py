"""What this machine is called, for what was measured on it."""

from __future__ import annotations

import ctypes
import platform

from specdec_cli.llama.devices import usable_cpus
from specdec_cli.llama.library import ggml, llama
from specdec_cli.llama.machine import CPU


def this_machine() -> str:
    """Its processor and how many CPUs of it this process may use: what the best threads and lengths depend on.

    Not its name in the network, which a container or a laptop changes without any of that.

    Raises:
        ModelError: llama.cpp does not load.
    """
    count = usable_cpus()
    return f"{_processor()}, {count} CPU{'' if count == 1 else 's'}"


def _processor() -> str:
    llama()
    device = ggml("ggml_backend_dev_by_type", ctypes.c_void_p, (ctypes.c_int,))(CPU)
    described = ggml("ggml_backend_dev_description", ctypes.c_char_p, (ctypes.c_void_p,))(device) if device else None
    return " ".join((described or b"").decode("utf-8", "replace").split()) or platform.machine()
