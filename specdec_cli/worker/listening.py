"""The socket that ggml listens at, which it opens in C and hands to nobody: it is looked for among the open ones."""

from __future__ import annotations

import socket
from contextlib import suppress

from specdec_cli.llama.keepalive import own_sockets, probe

IDLE, INTERVAL, PROBES = 15, 5, 3
"""For a client: see `probe`."""


def find_listening(host: str, port: int) -> socket.socket | None:
    """The socket of this process that listens there, a duplicate to be closed; None if there is none, or on Windows."""
    for candidate in own_sockets():
        with suppress(OSError):
            listens = candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if listens and candidate.getsockname() == (host, port):
                return candidate.dup()
    return None


def watch_clients(listening: socket.socket) -> None:
    """Notice clients whose machine lost its power or its network: accepted sockets inherit this.

    Without it the one that a worker serves would block it for ever.
    """
    probe(listening, IDLE, INTERVAL, PROBES)
