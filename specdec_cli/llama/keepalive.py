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
OPTIONS: Final = {"TCP_KEEPIDLE": 10, "TCP_KEEPALIVE": 10, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3}
"""Seconds of silence before the kernel asks whether the other side is there (macOS has its own name for it), seconds
between questions, and how many may go unanswered. The kernel of a worker that computes answers them.

A limit on the answers to data too (TCP_USER_TIMEOUT) would end a long pass: what waits to be read counts as unanswered.
"""


def keep_alive(address: str) -> None:
    """Watch over this process's connections to `address`, which is in numbers, whoever made them."""
    for connection in _connections_to(address):
        with suppress(OSError):  # one that breaks just now
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name in OPTIONS.keys() & vars(socket):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), OPTIONS[name])


def shut_down(address: str) -> None:
    """Break this process's connections to `address`, which is in numbers, whoever made them and waits for them."""
    for connection in _connections_to(address):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _connections_to(address: str) -> Iterator[socket.socket]:
    """Copies of this process's descriptors of connections there: what is set on a copy holds for both."""
    host, _, port = address.rpartition(":")
    for descriptor in _descriptors():
        with suppress(OSError):  # closed by now, or no connection
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            copy = socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM)
            with copy:
                if copy.getpeername() == (host, int(port)):
                    yield copy


def _descriptors() -> list[int]:
    for folder in FOLDERS:
        with suppress(OSError):
            return [int(each.name) for each in folder.iterdir()]
    return []
