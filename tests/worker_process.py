"""A real worker for tests: llama.cpp's own server in a process, on one thread of the CPU and a free port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Final, Self

from specdec_cli.errors import ModelError
from specdec_cli.llama.greeting import greet

SERVE: Final = """
import os, resource, sys, threading
from specdec_cli.llama.devices import devices
from specdec_cli.llama.rpc_library import start_server
endpoint, count, room = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
cpus = [each.pointer for each in devices() if each.kind == "CPU"][:1] * count
if room:
    held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + room, held + room))
threading.Thread(target=lambda: os._exit(len(os.read(0, 1))), daemon=True).start()  # with the tests, whatever ends them
start_server(endpoint, None, 1, cpus)
"""
PATIENCE: Final = 60.0
"""Seconds until a worker that does not come up fails the test."""


def free_port() -> int:
    """A port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class WorkerProcess:
    """A worker at `endpoint` that lends its CPU as so many `devices`; `room` is the bytes it may still take, 0 for any.

    Entered, it answers greetings; left, it is gone.
    """

    def __init__(self, *, devices: int = 1, room: int = 0, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        self.endpoint = f"127.0.0.1:{self.port}"
        self._output: Any = TemporaryFile()  # noqa: SIM115 - closed on leaving
        root = str(Path(__file__).parent.parent)
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE, self.endpoint, str(devices), str(room)],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": root},
        )

    @property
    def pid(self) -> int:
        """The process that serves."""
        return self._process.pid

    @property
    def output(self) -> str:
        """What it printed so far; llama.cpp flushes that with every client."""
        self._output.flush()
        return os.pread(self._output.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    @property
    def connections(self) -> int:
        """Clients that it accepted so far, the greeting of `__enter__` included."""
        return self.output.count("Accepted client connection")

    def wait_for(self, connections: int) -> None:
        """Wait until it let go of so many clients, the greeting of `__enter__` included."""
        deadline = time.monotonic() + PATIENCE
        while self.output.count("Client connection closed") < connections:
            assert time.monotonic() < deadline, self.output
            time.sleep(0.01)

    def stop(self) -> None:
        """Let it stand still without letting go of anything."""
        os.kill(self.pid, signal.SIGSTOP)

    def kill(self) -> None:
        """Let it die as if by a power cut, but for the kernel, which closes its connections."""
        self._process.kill()
        self._process.wait(PATIENCE)

    def __enter__(self) -> Self:
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(ModelError):
                greet(self.endpoint, patience=1.0)
                return self
            assert self._process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.02)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.kill()
        self._output.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
