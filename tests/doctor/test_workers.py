"""Workers as a report shows them: what they lend, under which names, how far away they are, and what is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from specdec_cli.doctor import workers as doctor_workers
from specdec_cli.doctor.workers import greet_workers
from tests.worker_process import PATIENCE, WorkerProcess, free_port

CONNECT = """
import sys
from specdec_cli.llama.workers import Workers
workers = Workers(sys.argv[1:])
print(*(f"{each.name} {each.kind} {each.backend} {each.total} {each.endpoint}" for each in workers.devices), sep="\\n")
workers.close()
"""

INTERRUPTED = """
import os, signal
from threading import Event
from specdec_cli.doctor import workers

def never(endpoint):
    os.kill(os.getpid(), signal.SIGINT)
    Event().wait()

workers.greet = never
try:
    workers.greet_workers(["127.0.0.1:1"], loads=False)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture(scope="module")
def endpoints() -> Iterator[tuple[str, str]]:
    """Two workers, the first of which lends two devices."""
    with WorkerProcess(devices=2) as first, WorkerProcess() as second:
        yield first.endpoint, second.endpoint


def test_devices_are_named_and_described_as_a_session_would_find_them(endpoints: tuple[str, str]) -> None:
    found = [device for worker in greet_workers(endpoints, loads=True) for device in worker.devices]
    told = [f"{each.name} {each.kind} {each.backend} {each.total} {each.endpoint}" for each in found]
    command = [sys.executable, "-c", CONNECT, *endpoints]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told == done.stdout.splitlines()
    assert [each.name for each in found] == ["RPC0", "RPC1", "RPC2"]
    assert all(0 < each.free <= each.total for each in found)


def test_an_absent_worker_keeps_none_of_the_others_from_being_told(endpoints: tuple[str, str]) -> None:
    absent = f"127.0.0.1:{free_port()}"
    first, missing, last = greet_workers([endpoints[1], absent, endpoints[0]], loads=True)
    assert [each.name for worker in (first, last) for each in worker.devices] == ["RPC0", "RPC1", "RPC2"]
    assert (missing.endpoint, missing.greeting, missing.version, missing.devices) == (absent, None, "", ())
    assert missing.problem is not None
    assert absent in missing.problem.message
    assert missing.problem.hint


def test_another_version_is_a_problem_that_names_both_and_lends_nothing(
    endpoints: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_workers, "protocol_version", lambda: (7, 0, 99))
    (worker,) = greet_workers(endpoints[:1], loads=True)
    assert worker.problem is not None
    assert f"{endpoints[0]} speaks version {worker.version} of the protocol, and this llama.cpp 7.0.99" in str(
        worker.problem
    )
    assert worker.devices == ()


def test_without_llama_cpp_workers_are_greeted_and_no_version_is_asked(
    endpoints: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> None:
        raise AssertionError

    monkeypatch.setattr(doctor_workers, "protocol_version", asked)
    (worker,) = greet_workers(endpoints[1:], loads=False)
    assert worker.problem is None
    assert worker.greeting is not None
    assert 0 < worker.greeting.round_trip < 5


def test_where_none_is_asked_about_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_workers, "greet", None)
    assert greet_workers((), loads=True) == ()


def test_ctrl_c_ends_the_wait_for_one_that_does_not_answer() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n")
