"""Each thing that can be at an endpoint has words of its own, and none of them takes longer than one is patient."""

from __future__ import annotations

import socket
import struct
import threading
import time

import pytest

from specdec_cli.llama import greeting
from specdec_cli.llama.greeting import DEVICE_COUNT, GET_DEVICE_MEMORY, HELLO, Greeting, GreetingError, greet
from tests.fake_worker import BYTES, answering, answers_of, listening
from tests.worker_process import WorkerProcess, free_port

SOON = 0.2
"""Seconds of patience where nothing is going to come."""


def refusal(endpoint: str, *, patience: float = 5.0) -> GreetingError:
    """Why there is no greeting; each says where, and the way out."""
    with pytest.raises(GreetingError) as caught:
        greet(endpoint, patience=patience)
    assert endpoint in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


def test_a_real_worker_says_its_version_and_the_memory_of_each_device() -> None:
    with WorkerProcess(devices=2) as worker:
        found = greet(worker.endpoint)
    assert found.version[0] == greeting.KNOWN_MAJOR
    assert found.memory is not None
    assert len(found.memory) == 2
    assert all(0 < free <= total for free, total in found.memory)
    assert 0 < found.round_trip < 5
    assert found.address == worker.endpoint


def test_a_worker_is_left_when_the_greeting_ends() -> None:
    with WorkerProcess() as worker:
        greet(worker.endpoint)
        worker.wait_for(2)
        assert worker.connections == 2


def test_the_round_trip_is_the_median_of_three_tiny_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    clock = iter([0.0, 9.0, 10.0, 10.5, 20.0, 20.25, 30.0, 37.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    with listening(answering(answers_of(7, 0, 0), asked)) as endpoint:
        found = greet(endpoint)
    assert found == Greeting(endpoint, (7, 0, 0), 0.5, (BYTES, BYTES), endpoint)
    assert asked == [(HELLO, 24), *[(DEVICE_COUNT, 0)] * 3, *[(GET_DEVICE_MEMORY, 4)] * 2]


def test_of_a_protocol_that_we_do_not_know_nothing_but_the_version_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    clock = iter([1.0, 3.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    with listening(answering(answers_of(8, 1, 2), asked)) as endpoint:
        assert greet(endpoint) == Greeting(endpoint, (8, 1, 2), 2.5, None, endpoint)
    assert asked == [(HELLO, 24)]


def test_an_old_server_that_hangs_up_on_our_hello_says_its_version_to_its_own() -> None:
    def converse(client: socket.socket) -> None:
        if client.recv(9, socket.MSG_WAITALL) == struct.pack("<BQ", HELLO, 0):
            client.sendall(struct.pack("<Q", 3) + bytes((3, 6, 1)))

    with listening(converse) as endpoint:
        found = greet(endpoint)
    assert (found.version, found.memory) == ((3, 6, 1), None)


def test_a_port_where_nothing_listens_asks_whether_the_worker_runs() -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    error = refusal(endpoint)
    assert (error.fault, error.message) == ("refused", f"worker {endpoint}: nothing listens there")
    assert "specdec worker" in error.hint
    assert error.exit_code == 3


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a..b", "x" * 70])
def test_a_host_that_does_not_exist_is_told_from_one_that_does_not_listen(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(name: str) -> str:
        name.encode("idna")  # as Python does: it raises UnicodeError for what no host can be called
        raise socket.gaierror

    monkeypatch.setattr(socket, "gethostbyname", look_up)
    error = refusal(f"{host}:50052")
    assert (error.fault, error.message) == ("unknown", f'worker {host}:50052: there is no host "{host}"')


def test_a_search_for_a_name_that_takes_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    found = threading.Event()
    monkeypatch.setattr(socket, "gethostbyname", lambda _: str(found.wait()))
    try:
        error = refusal("slow:50052", patience=SOON)
    finally:
        found.set()
    assert (error.fault, "takes too long" in error.message) == ("unknown", True)


@pytest.mark.parametrize(
    ("failure", "words"),
    [(TimeoutError(), "no answer"), (OSError(113, "No route to host"), "No route to host")],
)
def test_a_machine_that_cannot_be_reached_is_told_from_one_that_refuses(
    failure: OSError, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object) -> socket.socket:
        raise failure

    monkeypatch.setattr(socket, "create_connection", connect)
    error = refusal("127.0.0.1:50052")
    assert (error.fault, error.message) == ("unreachable", f"worker 127.0.0.1:50052 cannot be reached: {words}")


def test_a_tunnel_with_nothing_behind_it_accepts_and_hangs_up() -> None:
    with listening(lambda _: None) as endpoint:
        error = refusal(endpoint)
    assert (error.fault, "closes it at once" in error.message) == ("closed", True)
    assert "tunnel" in error.hint


def test_a_worker_that_serves_another_client_accepts_and_does_not_answer() -> None:
    with WorkerProcess() as worker, socket.create_connection(("127.0.0.1", worker.port)):
        error = refusal(worker.endpoint, patience=SOON)
    assert (error.fault, "serves another client" in error.message) == ("busy", True)
    assert "one client at a time" in error.hint


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", '"HTTP/1.1"'),
        (b"SSH-2.0-OpenSSH_9.6\r\n", '"SSH-2.0-"'),
        (b"\xff" * 64, "bytes ff ff ff ff ff ff ff ff"),
        (struct.pack("<Q", 2) + b"\x07\x00", "bytes"),
        (struct.pack("<Q", 28) + b"\x07", "bytes"),
    ],
)
def test_another_server_is_no_worker_and_what_it_says_is_shown(said: bytes, shown: str) -> None:
    def converse(client: socket.socket) -> None:
        client.recv(33, socket.MSG_WAITALL)
        client.sendall(said)

    with listening(converse) as endpoint:
        error = refusal(endpoint)
    assert error.fault == "foreign"
    assert shown in error.message or shown == "bytes"


@pytest.mark.parametrize(
    "changed",
    [
        {DEVICE_COUNT: b"\x01"},
        {DEVICE_COUNT: struct.pack("<I", 1 << 30)},
        {DEVICE_COUNT: struct.pack("<I", 0)},
        {GET_DEVICE_MEMORY: b""},
    ],
)
def test_what_knows_the_hello_and_nothing_else_is_no_worker(changed: dict[int, bytes]) -> None:
    with listening(answering(answers_of(7, 0, 0) | changed)) as endpoint:
        assert refusal(endpoint).fault == "foreign"


def test_what_hangs_up_after_the_hello_is_no_worker() -> None:
    with listening(answering({HELLO: bytes((7, 0, 0, 0))})) as endpoint:
        assert refusal(endpoint).fault == "foreign"


def test_one_byte_at_a_time_takes_no_longer_than_one_is_patient() -> None:
    def converse(client: socket.socket) -> None:
        client.sendall(struct.pack("<Q", 4096))
        for _ in range(60):
            client.sendall(b"\x07")
            time.sleep(0.02)

    with listening(converse) as endpoint:
        assert refusal(endpoint, patience=SOON).fault == "busy", "it hung up before we did"
