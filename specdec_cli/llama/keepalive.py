"""Connections that notice when the other machine is gone: without power it hangs up on nobody."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

FOLDERS: Final = (Path("/proc/self/fd"), Path("/dev/fd"))
"""Where a process finds its own descriptors, by system."""
IDLE, INTERVAL, PROBES = 10, 3, 3
"""For a worker: see `probe`. A limit on the answers to data too (TCP_USER_TIMEOUT) would end a long pass, for what
waits to be read counts as unanswered."""


def keep_alive(address: str) -> None:
    """Watch over this process's connections to `address`, which is in numbers, whoever made them."""
    for connection in _connections_to(address):
        with suppress(OSError):  # one that breaks just now
            probe(connection, IDLE, INTERVAL, PROBES)


def probe(connection: socket.socket, idle: int, interval: int, probes: int) -> None:
    """After `idle` seconds of silence let the kernel ask whether the other side is there, each `interval` seconds.

    So many `probes` may go unanswered. The kernel of a machine that computes answers them.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = {"TCP_KEEPIDLE": idle, "TCP_KEEPALIVE": idle, "TCP_KEEPINTVL": interval, "TCP_KEEPCNT": probes}
    for name in wanted.keys() & vars(socket):  # the first is what Linux has, the second macOS
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), wanted[name])


def shut_down(address: str) -> None:
    """Break this process's connections to `address`, which is in numbers, whoever made them and waits for them."""
    for connection in _connections_to(address):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _connections_to(address: str) -> Iterator[socket.socket]:
    host, _, port = address.rpartition(":")
    for each in own_sockets():
        with suppress(OSError):  # no connection
            if each.getpeername() == (host, int(port)):
                yield each


def own_sockets() -> Iterator[socket.socket]:
    """Copies of this process's sockets, C code's too, each closed after its turn: what is set on one holds for both."""
    for descriptor in _descriptors():
        with suppress(OSError):  # closed by now
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                with socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as copy:
                    yield copy


def can_look() -> bool:
    """Whether this system shows a process its descriptors; Windows does not."""
    return any(folder.is_dir() for folder in FOLDERS)


def _descriptors() -> list[int]:
    for folder in FOLDERS:
        with suppress(OSError):
            return [int(each.name) for each in folder.iterdir()]
    return []
