"""The socket that ggml listens at, which it opens in C and hands to nobody: it is looked for among the open files."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

IDLE, INTERVAL, PROBES = 15, 5, 3
"""Seconds of silence before a client is asked for a sign of life, seconds between such questions, and how many."""
OPEN_FILES: Final = Path("/dev/fd")
"""A folder of this process's own descriptors, on Linux and macOS."""


def find_listening(host: str, port: int) -> socket.socket | None:
    """The socket of this process that listens there, a duplicate to be closed; None if there is none, or on Windows."""
    for descriptor in _descriptors():
        with suppress(OSError), socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as candidate:
            listens = candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if listens and candidate.getsockname() == (host, port):
                return candidate.dup()
    return None


def can_look() -> bool:
    """Whether this system shows a process its open files."""
    return OPEN_FILES.is_dir()


def watch_clients(listening: socket.socket) -> None:
    """Notice clients whose machine lost its power or its network: accepted sockets inherit this.

    Without it the one that a worker serves would block it for ever.
    """
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {"TCP_KEEPIDLE": IDLE, "TCP_KEEPALIVE": IDLE, "TCP_KEEPINTVL": INTERVAL, "TCP_KEEPCNT": PROBES}
    for name, value in wanted.items():
        if hasattr(socket, name):  # the first of them is what Linux has, the second macOS
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _descriptors() -> Iterator[int]:
    if can_look():
        yield from sorted(int(path.name) for path in OPEN_FILES.iterdir() if path.name.isdigit())
