from __future__ import annotations

import hashlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest

from benchmarks.delay import LOOPBACK, Proxy, Traffic

PATIENCE = 20.0
"""Seconds after which a connection that says nothing fails the test."""


@pytest.fixture
def worker() -> Iterator[socket.socket]:
    with socket.create_server((LOOPBACK, 0)) as listening:
        listening.settimeout(PATIENCE)
        yield listening


def port_of(listening: socket.socket) -> int:
    port: int = listening.getsockname()[1]
    return port


def connected(proxy: Proxy, worker: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection through `proxy`."""
    client = socket.create_connection((LOOPBACK, proxy.port), PATIENCE)
    end, _ = worker.accept()
    end.settimeout(PATIENCE)
    return client, end


def received(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := source.recv(size - len(data))):
        data += part
    return data


def test_all_bytes_arrive_in_order_both_ways_at_once(worker: socket.socket) -> None:
    size = 20_000_000
    there, back = (hashlib.shake_128(name).digest(size) for name in (b"there", b"back"))
    with Proxy(port_of(worker), 0.003) as proxy:
        client, end = connected(proxy, worker)
        with client, end:
            senders = [
                threading.Thread(target=client.sendall, args=(there,)),
                threading.Thread(target=end.sendall, args=(back,)),
            ]
            got: list[bytes] = []
            reader = threading.Thread(target=lambda: got.append(received(end, size)))
            for each in (*senders, reader):
                each.start()
            assert received(client, size) == back
            for each in (*senders, reader):
                each.join()
            assert got == [there]


def test_nothing_arrives_before_its_time(worker: socket.socket) -> None:
    with Proxy(port_of(worker), 0.03) as proxy:
        client, end = connected(proxy, worker)
        with client, end:
            for _ in range(3):
                started = time.perf_counter()
                client.sendall(b"?")
                assert end.recv(1) == b"?"
                asked = time.perf_counter()
                end.sendall(b"!")
                assert client.recv(1) == b"!"
                assert asked - started >= 0.03
                assert time.perf_counter() - asked >= 0.03


def test_an_exchange_is_a_question_however_long_and_its_answer(worker: socket.socket) -> None:
    with Proxy(port_of(worker), 0.001) as proxy:
        client, end = connected(proxy, worker)
        with client, end:
            for size in (1, 3_000_000):
                client.sendall(bytes(size))
                assert len(received(end, size)) == size
                end.sendall(bytes(2 * size))
                assert len(received(client, 2 * size)) == 2 * size
            client.sendall(b"said, not asked")
            received(end, 15)
            assert proxy.traffic() == Traffic(3_000_016, 6_000_002, 2)


@pytest.mark.parametrize("leaving", ["client", "worker"])
def test_who_leaves_is_missed_on_the_other_side_after_what_was_said(worker: socket.socket, leaving: str) -> None:
    with Proxy(port_of(worker), 0.001) as proxy:
        ends = connected(proxy, worker)
        leaver, other = ends if leaving == "client" else reversed(ends)
        with other:
            leaver.sendall(b"goodbye")
            leaver.close()
            assert received(other, 100) == b"goodbye"


def test_it_serves_the_next_client_and_outlives_a_worker_that_is_away(worker: socket.socket) -> None:
    with Proxy(port_of(worker), 0) as proxy:
        for said in (b"1", b"2"):
            client, end = connected(proxy, worker)
            with client, end:
                client.sendall(said)
                assert end.recv(1) == said
        worker.close()
        with socket.create_connection((LOOPBACK, proxy.port), PATIENCE) as client:
            assert client.recv(1) == b""
        assert proxy.traffic().sent == 2


def test_it_ends_with_who_started_it(worker: socket.socket) -> None:
    with Proxy(port_of(worker), 0) as proxy:
        client, end = connected(proxy, worker)
        with client, end:
            process: subprocess.Popen[str] = proxy._process
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
