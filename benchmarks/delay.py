"""A network that is made up: a TCP proxy before a worker, which delays all that passes by a fixed time each way.

    python -m benchmarks.delay --milliseconds 0 1 5 20        how exact it is, by a ping-pong

It runs as a process of its own, so that it never waits for a client's interpreter, and sleeps while nothing is due.
Only time is added: order stays, and bandwidth is what loopback has.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

LOOPBACK: Final = "127.0.0.1"
CHUNK: Final = 2**20
HELD: Final = 2**28
"""Bytes on their way in one direction before the sender has to wait: far more than a round trip needs."""
STDIN: Final = 0
SIZES: Final = (1, 10_000, 3_000_000)
"""Bytes of an answer in the ping-pong: the last are the logits of five tokens."""
TURNS: Final = 50


class Traffic(NamedTuple):
    """Bytes that a worker was sent and that it sent, and how often it answered: round trips that were waited for."""

    sent: int = 0
    received: int = 0
    exchanges: int = 0


class Proxy:
    """A process that passes connections on to `port` of this machine, `seconds` later each way.

    It listens at `endpoint`, serves one connection after another, as a worker does, and ends with this process.
    """

    def __init__(self, port: int, seconds: float) -> None:
        command = [sys.executable, "-m", "benchmarks.delay", "--serve", str(port), str(seconds)]
        root = Path(__file__).parent.parent
        self._process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.endpoint = f"{LOOPBACK}:{self.port}"

    def traffic(self) -> Traffic:
        """All that passed so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("?")
        self._process.stdin.flush()
        return Traffic(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """Cut what is connected."""
        self._process.kill()
        with self._process:  # waits for its end, and closes both pipes
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Direction:
    """One way of a connection: what was read from `source`, each part with the time from which `sink` may have it."""

    def __init__(self, source: socket.socket, sink: socket.socket, seconds: float) -> None:
        self.source, self.sink = source, sink
        self._seconds = seconds
        self._waiting: deque[tuple[float, memoryview]] = deque()
        self._held = 0
        self._ended = False

    @property
    def may_read(self) -> bool:
        return not self._ended and self._held < HELD

    @property
    def due(self) -> float | None:
        """When the next part is to be sent, None if there is none."""
        return self._waiting[0][0] if self._waiting else None

    @property
    def finished(self) -> bool:
        return self._ended and not self._waiting

    def read(self) -> int:
        """Take what has come, as so many bytes; none is the end."""
        data = self.source.recv(CHUNK)
        self._ended = not data
        if data:
            self._held += len(data)
            self._waiting.append((time.perf_counter() + self._seconds, memoryview(data)))
        return len(data)

    def send(self) -> None:
        """Send what is due, as far as the system takes it."""
        while self._waiting and self._waiting[0][0] <= time.perf_counter():
            due, data = self._waiting.popleft()
            sent = 0
            with contextlib.suppress(BlockingIOError):
                sent = self.sink.send(data)
            self._held -= sent
            if sent < len(data):
                self._waiting.appendleft((due, data[sent:]))
                return


class Server:
    """The process of a `Proxy`. It says on standard output where it listens, and its traffic when it is asked."""

    def __init__(self, port: int, seconds: float) -> None:
        self._port, self._seconds = port, seconds
        self._traffic = [0, 0, 0]
        self._asked = False
        self._listening = socket.create_server((LOOPBACK, 0))
        print(self._listening.getsockname()[1], flush=True)

    def run(self) -> None:
        """Pass on until standard input ends."""
        while True:
            if self._listening in self._select([self._listening], [], None):
                client, _ = self._listening.accept()
                with client, contextlib.suppress(ConnectionError):
                    self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        """Pass on what `client` and the worker say until one of them ends."""
        with socket.create_connection((LOOPBACK, self._port)) as worker:
            for each in (client, worker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                each.setblocking(False)
            ways = Direction(client, worker, self._seconds), Direction(worker, client, self._seconds)
            while not any(way.finished for way in ways):
                self._pass(ways)

    def _pass(self, ways: tuple[Direction, Direction]) -> None:
        """Wait for whatever happens next, and do it."""
        now = time.perf_counter()
        due = [way.due for way in ways if way.due is not None]
        later = min((each - now for each in due if each > now), default=None)
        full = [way.sink for way in ways if way.due is not None and way.due <= now]
        ready = self._select([way.source for way in ways if way.may_read], full, later)
        for index, way in enumerate(ways):
            if way.source in ready:
                self._count(index, way.read())
            way.send()

    def _count(self, way: int, size: int) -> None:
        self._traffic[way] += size
        self._traffic[2] += self._asked and way == 1
        self._asked = way == 0

    def _select(
        self, sources: list[socket.socket], sinks: list[socket.socket], seconds: float | None
    ) -> Sequence[object]:
        """Those of `sources` that can be read, `seconds` from now at the latest; leaves when standard input ends."""
        watched: list[socket.socket | int] = [*sources, STDIN]
        ready, _, _ = select.select(watched, sinks, [], seconds)
        if STDIN in ready:
            if not os.read(STDIN, 1):
                sys.exit()
            print(json.dumps(self._traffic), flush=True)
        return ready


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--milliseconds", type=float, nargs="+", default=[0, 1, 5, 20])
    parser.add_argument("--serve", nargs=2, metavar=("PORT", "SECONDS"), help="be the proxy")
    arguments = parser.parse_args()
    if arguments.serve:
        Server(int(arguments.serve[0]), float(arguments.serve[1])).run()
    print(f"{'each way':>9}{'answer':>12}   more than that delay, there and back: median, and 9 of 10 below")
    for milliseconds in arguments.milliseconds:
        for size in SIZES:
            direct = ping_pong(size, None)
            times = [each - statistics.median(direct) for each in ping_pong(size, milliseconds / 1000)]
            middle, most = (1000 * each - 2 * milliseconds for each in (statistics.median(times), sorted(times)[-6]))
            print(f"{milliseconds:6g} ms{size:10,} B{middle:10.3f} ms{most:10.3f} ms", flush=True)


def ping_pong(size: int, seconds: float | None) -> list[float]:
    """Seconds from a question of one byte to the end of an answer of `size`, through a proxy unless None."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        threading.Thread(target=answer, args=(listening, size), daemon=True).start()
        port = listening.getsockname()[1]
        if seconds is None:
            return ask(port, size)
        with Proxy(port, seconds) as proxy:
            return ask(proxy.port, size)


def answer(listening: socket.socket, size: int) -> None:
    client, _ = listening.accept()
    with client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while client.recv(1):
            client.sendall(bytes(size))


def ask(port: int, size: int) -> list[float]:
    times = []
    with socket.create_connection((LOOPBACK, port)) as worker:
        worker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(TURNS):
            started, left = time.perf_counter(), size
            worker.sendall(b"?")
            while left:
                left -= len(worker.recv(min(left, CHUNK)))
            times.append(time.perf_counter() - started)
    return times


if __name__ == "__main__":
    main()
