"""The first words with a worker, over a socket of our own: ggml would end this process if something were wrong.

A request is a byte that names the command, the size of what follows in eight bytes, and that; a response is a size
and that many bytes. A worker serves one client after another: the kernel accepts others, which get no answer until
their turn.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from statistics import median
from threading import Thread
from typing import Final, Literal

from specdec_cli.errors import ModelError

Version = tuple[int, int, int]


def spell(version: Version) -> str:
    """As people write it, such as `7.0.0`."""
    return ".".join(map(str, version))


Fault = Literal["unknown", "refused", "unreachable", "closed", "busy", "foreign"]

KNOWN_MAJOR: Final = 7
"""The protocol whose commands have these numbers; HELLO has its number in all of them."""
HELLO, DEVICE_COUNT, GET_DEVICE_MEMORY = 14, 15, 11
CAPABILITIES: Final = bytes(24)
"""None: no transport but TCP."""
EXCHANGES: Final = 3
LONGEST_ANSWER: Final = 4096
MOST_DEVICES: Final = 64


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a worker says of itself. `round_trip` is in seconds; `memory` is free and total bytes of each device.

    `memory` is None where its protocol is one that we do not know. `address` is the endpoint in numbers.
    """

    endpoint: str
    version: Version
    round_trip: float
    memory: tuple[tuple[int, int], ...] | None
    address: str = ""


class GreetingError(ModelError):
    """A worker that cannot be greeted, and which `fault` that is."""

    def __init__(self, message: str, fault: Fault, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


def greet(endpoint: str, *, patience: float = 5.0) -> Greeting:
    """Connect to the worker at `endpoint`, ask, and leave again; `patience` is in seconds, for all of it.

    Raises:
        GreetingError: nothing listens there, it is no worker, or it serves somebody else.
    """
    deadline = time.monotonic() + patience
    host, _, port = endpoint.rpartition(":")
    address = _resolve(host, endpoint, deadline), int(port)
    with _connect(address, endpoint, deadline) as connection:
        try:
            return _ask(_Talk(connection, deadline), endpoint, f"{address[0]}:{port}")
        except TimeoutError:
            raise GreetingError(
                f"worker {endpoint} accepts the connection, but does not answer within {patience:g} s: "
                "it serves another client, or hangs",
                "busy",
                hint="a worker serves one client at a time: wait for the other one to end, or start a second worker",
            ) from None
        except _ForeignError as error:
            raise _foreign(endpoint, str(error)) from None
        except OSError:
            return _greet_old(address, endpoint, deadline)


def _resolve(host: str, endpoint: str, deadline: float) -> str:
    """The IPv4 address of `host`. The system's own search may take longer than we wait, so a thread waits for it."""
    found: list[str] = []

    def look_up() -> None:
        try:
            found.append(socket.gethostbyname(host))
        except (OSError, UnicodeError):  # there is none, or none can be called so
            return

    thread = Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(_left(deadline))
    if found:
        return found[0]
    reason = "the search for its address takes too long" if thread.is_alive() else f'there is no host "{host}"'
    raise GreetingError(
        f"worker {endpoint}: {reason}", "unknown", hint="check the name, or give the IPv4 address of that machine"
    )


def _connect(address: tuple[str, int], endpoint: str, deadline: float) -> socket.socket:
    try:
        connection = socket.create_connection(address, _left(deadline))
    except ConnectionRefusedError:
        raise GreetingError(
            f"worker {endpoint}: nothing listens there",
            "refused",
            hint=f"is it running? On that machine: specdec worker --port {address[1]}",
        ) from None
    except OSError as error:
        reason = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise GreetingError(
            f"worker {endpoint} cannot be reached: {reason}",
            "unreachable",
            hint="is that machine up, a firewall in between, or several clients waiting for their turn?",
        ) from None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _greet_old(address: tuple[str, int], endpoint: str, deadline: float) -> Greeting:
    """Say hello as older protocols did, to what hung up on ours: with that they tell their version.

    Raises:
        GreetingError: it hangs up on that too.
    """
    try:
        with _connect(address, endpoint, deadline) as connection:
            started = time.perf_counter()
            version = _to_version(_Talk(connection, deadline).ask(HELLO))
            return Greeting(endpoint, version, time.perf_counter() - started, None, f"{address[0]}:{address[1]}")
    except (OSError, GreetingError, _ForeignError):
        raise GreetingError(
            f"worker {endpoint} accepts the connection and closes it at once",
            "closed",
            hint="is it the end of a tunnel with no worker behind it, or an older rpc-server of llama.cpp?",
        ) from None


class _ForeignError(Exception):
    """What answered does not speak like a worker."""


class _Talk:
    """Requests and responses on a connection, until the deadline.

    Raises:
        OSError: the connection broke, or nothing came in time.
        _ForeignError: what comes is not a response.
    """

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def ask(self, command: int, request: bytes = b"") -> bytes:
        self._connection.settimeout(_left(self._deadline))
        self._connection.sendall(struct.pack("<BQ", command, len(request)) + request)
        head = self._receive(8)
        size = int.from_bytes(head, "little")
        if size > LONGEST_ANSWER:
            raise _ForeignError(_printable(head))
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            self._connection.settimeout(_left(self._deadline))
            part = self._connection.recv(size - len(received))
            if not part and received:
                raise _ForeignError(_printable(received))
            if not part:
                raise ConnectionResetError
            received += part
        return received


def _ask(talk: _Talk, endpoint: str, address: str) -> Greeting:
    started = time.perf_counter()
    version = _to_version(talk.ask(HELLO, CAPABILITIES))
    round_trip = time.perf_counter() - started
    if version[0] != KNOWN_MAJOR:
        return Greeting(endpoint, version, round_trip, None, address)
    counts, trips = [], []
    try:
        for _ in range(EXCHANGES):
            started = time.perf_counter()
            counts.append(_numbers(talk.ask(DEVICE_COUNT), "<I")[0])
            trips.append(time.perf_counter() - started)
        if not 1 <= counts[0] <= MOST_DEVICES:
            raise _ForeignError(f"{counts[0]} devices")
        memory = [_numbers(talk.ask(GET_DEVICE_MEMORY, struct.pack("<I", each)), "<QQ") for each in range(counts[0])]
    except ConnectionError:
        raise _ForeignError("a version and nothing more") from None
    return Greeting(endpoint, version, median(trips), tuple((free, total) for free, total in memory), address)


def _to_version(answer: bytes) -> Version:
    if len(answer) < 3:
        raise _ForeignError(_printable(answer))
    return answer[0], answer[1], answer[2]


def _numbers(answer: bytes, form: str) -> tuple[int, ...]:
    if len(answer) != struct.calcsize(form):
        raise _ForeignError(_printable(answer))
    return struct.unpack(form, answer)


def _foreign(endpoint: str, answer: str) -> GreetingError:
    return GreetingError(
        f"{endpoint} is no worker: it answers {answer}",
        "foreign",
        hint="another program listens there: give the port of specdec worker",
    )


def _printable(answer: bytes) -> str:
    return f'"{answer.decode("ascii", "replace")}"' if answer and answer.isascii() else f"bytes {answer.hex(' ')}"


def _left(deadline: float) -> float:
    """Seconds until `deadline`.

    Raises:
        TimeoutError: there are none.
    """
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left
