"""What may listen at an endpoint besides a worker: servers in a thread that answer as they are told."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from specdec_cli.llama.greeting import DEVICE_COUNT, GET_DEVICE_MEMORY, HELLO

Conversation = Callable[[socket.socket], object]

BYTES = (3 << 30, 4 << 30)
"""Free and in all, of each device."""


@contextmanager
def listening(converse: Conversation) -> Iterator[str]:
    """The endpoint of a server that does `converse` with one client after another, and then hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client, suppress(OSError):
                    converse(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def answering(answers: Mapping[int, bytes], asked: list[tuple[int, int]] | None = None) -> Conversation:
    """Give each command its answer, and hang up on one that has none; `asked` gets commands and sizes of requests."""

    def converse(client: socket.socket) -> None:
        while head := client.recv(9, socket.MSG_WAITALL):
            command, size = struct.unpack("<BQ", head)
            if size:
                client.recv(size, socket.MSG_WAITALL)
            if asked is not None:
                asked.append((command, size))
            if command not in answers:
                return
            client.sendall(struct.pack("<Q", len(answers[command])) + answers[command])

    return converse


def answers_of(*version: int, devices: int = 2) -> dict[int, bytes]:
    """What a worker of this version that lends so many devices answers."""
    return {
        HELLO: bytes((*version, 0)) + bytes(24),
        DEVICE_COUNT: struct.pack("<I", devices),
        GET_DEVICE_MEMORY: struct.pack("<QQ", *BYTES),
    }
