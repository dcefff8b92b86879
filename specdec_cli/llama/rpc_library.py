"""The functions of ggml's RPC backend, for those who serve devices and those who use them."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from specdec_cli.errors import ModelError
from specdec_cli.llama.greeting import Version
from specdec_cli.llama.library import ggml, llama

NOT_BUILT: Final = "llama.cpp is built without RPC, which workers need"
SAY_VERSION: Final = """
from specdec_cli.llama.devices import devices
from specdec_cli.llama.rpc_library import start_server
start_server("", None, 1, [next(each.pointer for each in devices() if each.kind == "CPU")])
"""
"""It says its version first, and then returns, for nobody can listen at no address."""
PATIENCE: Final = 30.0
"""Seconds for a process that says its version: graphics drivers take some to load."""


def check_built() -> None:
    """Refuse a llama.cpp without RPC.

    Raises:
        ModelError: it is.
    """
    _function("ggml_backend_rpc_add_server", ctypes.c_void_p, (ctypes.c_char_p,))


@cache
def protocol_version() -> Version | None:
    """The version of the protocol that this llama.cpp speaks, None if that cannot be found out.

    No function tells it, but a server prints it; so one is started in a process of its own, to end at once.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", SAY_VERSION], capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.search(rb"RPC server v(\d+)\.(\d+)\.(\d+)", done.stdout)
    return (int(said[1]), int(said[2]), int(said[3])) if said else None


def hold(endpoint: str) -> int:
    """Connect to a worker: ggml's backend on its first device, which keeps that one connection until `release`.

    Without a backend ggml would connect anew for each question, and let other clients in between. It waits for as
    long as the worker serves another client, and aborts as `add_server` does.

    Raises:
        ModelError: llama.cpp is built without RPC.
    """
    backend: int
    try:
        init = ggml("ggml_backend_rpc_init", ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_uint32))
    except AttributeError:  # a plug-in, whose functions are out of reach: two connections more
        first = lent_devices(endpoint)[0]
        backend = ggml("ggml_backend_dev_init", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p))(first, None)
    else:
        backend = init(endpoint.encode(), 0)
    return backend


def release(backend: int) -> None:
    """Let go of what `hold` gave."""
    ggml("ggml_backend_free", None, (ctypes.c_void_p,))(backend)


def lent_devices(endpoint: str) -> list[int]:
    """The devices of a worker, ggml's pointers; raises as `add_server` does."""
    registry = add_server(endpoint)
    if registry is None:
        return []
    count = ggml("ggml_backend_reg_dev_count", ctypes.c_size_t, (ctypes.c_void_p,))(registry)
    device = ggml("ggml_backend_reg_dev_get", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t))
    return [device(registry, index) for index in range(count)]


def add_server(endpoint: str) -> int | None:
    """The registry of the devices that a worker serves, None if it has none; it connects if nothing does.

    ggml aborts the process where it cannot connect or the worker speaks another protocol: greet it first.

    Raises:
        ModelError: llama.cpp is built without RPC.
    """
    function = _function("ggml_backend_rpc_add_server", ctypes.c_void_p, (ctypes.c_char_p,))
    registry: int | None = function(endpoint.encode())
    return registry


def start_server(endpoint: str, cache: str | None, threads: int, devices: Sequence[int]) -> None:
    """Serve `devices`, ggml's pointers, one client after another. It prints what it does and returns if it cannot bind.

    Raises:
        ModelError: llama.cpp is built without RPC.
    """
    pointers = ctypes.POINTER(ctypes.c_void_p)
    arguments = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, pointers)
    function = _function("ggml_backend_rpc_start_server", None, arguments)
    held = (ctypes.c_void_p * len(devices))(*devices)
    function(endpoint.encode(), None if cache is None else cache.encode(), threads, len(devices), held)


def _function(name: str, result: Any, arguments: tuple[Any, ...]) -> Any:
    llama()
    registry = ggml("ggml_backend_reg_by_name", ctypes.c_void_p, (ctypes.c_char_p,))(b"RPC")
    find = ggml("ggml_backend_reg_get_proc_address", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p))
    address = find(registry, name.encode()) if registry else None
    if not address:
        raise ModelError(
            NOT_BUILT,
            hint='CMAKE_ARGS="-DGGML_RPC=ON" pip install --force-reinstall '
            "--no-binary llama-cpp-python llama-cpp-python",
        )
    return ctypes.CFUNCTYPE(result, *arguments)(address)
