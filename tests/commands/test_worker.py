"""`specdec worker` as a user and a script meet it: what it says, whom it outlives, and how it ends."""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from specdec_cli.cli import run
from specdec_cli.worker.fnv import fnv1a
from tests.pty_process import PtyProcess
from tests.toy_gguf import attention_toy
from tests.worker.client import clients, wait_for
from tests.worker.running import RunningWorker, eventually, resident, runs

TENSOR = re.compile(r"[0-9a-f]{16}")
CONNECTIONS = Path("/proc/net/tcp")
ESTABLISHED, KEEPALIVE_TIMER = "01", "02"
MEGABYTE = 1_000_000
FLAT = 25 * MEGABYTE
"""Less than two copies of what a client of these tests puts onto a worker."""
KILLS = ("loading", "decoding 0", "loaded", "decoding 3", "loading", "decoding 1", "decoding 0", "loading")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy with one matrix that is big enough for ggml's cache, 15 MB."""
    return attention_toy(3.0).padded(60_000).write(tmp_path_factory.mktemp("model") / "toy.gguf")


@pytest.fixture(scope="module")
def worker() -> Iterator[RunningWorker]:
    with RunningWorker() as running:
        yield running


def port_of(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2])


def connect(endpoint: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port_of(endpoint)))


def served_memory(worker: RunningWorker, said: IO[str], *, deaths: int) -> int:
    """Bytes that the worker has while it serves the client that comes after so many `deaths`."""
    for _ in range(deaths):
        wait_for(said, "done")
    wait_for(said, "decoding 0")
    return resident(worker.serving)


def timers(port: int) -> set[str]:
    """The kinds of timers that run for the clients of a worker at this port."""
    rows = [line.split() for line in CONNECTIONS.read_text().splitlines()[1:]]
    return {row[5][:2] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED}


def tensors(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if TENSOR.fullmatch(path.name)]


def hash_of(path: Path) -> str:
    return f"{fnv1a(io.BytesIO(path.read_bytes())):016x}"


def test_it_says_what_it_serves_and_gives_a_script_the_address(worker: RunningWorker) -> None:
    assert re.fullmatch(r"127\.0\.0\.1:\d+", worker.endpoint)
    worker.wait_for("  CPU: ")
    assert re.search(rf"^serving at {worker.endpoint}, protocol \d+\.\d+\.\d+, 1 thread, no cache$", worker.said, re.M)
    assert re.search(r"^  CPU: .+ GB$", worker.said, re.M)


def test_ten_clients_that_are_killed_leave_it_serving_and_its_memory_flat(worker: RunningWorker, model: Path) -> None:
    with clients(worker.endpoint, model, "decoding 0", "decoding 0", "never") as said:
        served = served_memory(worker, said, deaths=2)
    with clients(worker.endpoint, model, *KILLS, "never") as said:
        assert abs(served_memory(worker, said, deaths=len(KILLS)) - served) < FLAT
    assert served > FLAT, "the memory of a model is what would be seen"


def test_a_client_that_stays_is_told_of_and_so_is_that_it_left(worker: RunningWorker) -> None:
    with connect(worker.endpoint):
        worker.wait_for("a client is connected\n")
    worker.wait_for("the client has left after ")


def test_clients_that_send_nonsense_are_sent_away(worker: RunningWorker) -> None:
    serving = worker.serving
    for nonsense in (b"GET / HTTP/1.1\r\n\r\n", b"\x0e" + b"\xff" * 32, b"\x00", bytes(range(99))):
        with connect(worker.endpoint) as client, suppress(OSError):  # whichever end notices first
            client.sendall(nonsense)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    assert worker.serving == serving
    assert runs(serving)


@pytest.mark.skipif(not CONNECTIONS.exists(), reason="only Linux tells the timers of its connections")
def test_a_client_whose_machine_is_gone_is_noticed(worker: RunningWorker) -> None:
    with connect(worker.endpoint):
        assert timers(port_of(worker.endpoint)) == {KEEPALIVE_TIMER}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_quietly_with_what_serves_behind_it(number: int) -> None:
    with RunningWorker() as worker:
        worker.wait_for("  CPU: ")
        serving, said = worker.serving, worker.said
        assert worker.end(number) == 0
        assert worker.said == said
        assert not runs(serving)


def test_signals_in_a_row_end_it_as_one_does() -> None:
    with RunningWorker() as worker:
        worker.wait_for("  CPU: ")
        serving = worker.serving
        for number in (signal.SIGINT, signal.SIGTERM) * 5:
            os.kill(worker.pid, number)
        assert worker.end(signal.SIGINT) == 0
        assert not runs(serving)


def test_ctrl_c_in_a_terminal_ends_it_quietly() -> None:
    with PtyProcess(["worker", "--port", "0", "--threads", "1"], columns=120) as process:
        process.wait_for("  CPU: ")
        process.press(b"\x03")
        assert process.wait() == 0
        assert "Traceback" not in process.received.decode()
        assert len(process.lines()) <= 3, "on a terminal the address is not said twice"


def test_what_serves_ends_when_the_worker_is_killed() -> None:
    with RunningWorker() as worker:
        serving = worker.serving
        worker.end(signal.SIGKILL)
        eventually(lambda: not runs(serving))


def test_a_crash_is_told_and_it_serves_again_at_the_same_port() -> None:
    with RunningWorker() as worker:
        with connect(worker.endpoint):
            worker.wait_for("a client is connected")
            crashed = worker.serving
            os.kill(crashed, signal.SIGSEGV)
            worker.wait_for("the serving process died: crashed (SIGSEGV); starting it again\nserving again\n")
        assert worker.serving != crashed
        connect(worker.endpoint).close()
        assert worker.end() == 0


def test_one_that_dies_again_and_again_without_a_client_gives_up() -> None:
    with RunningWorker() as worker:
        for times in range(3):
            if times:
                worker.wait_for("serving again", times=times)
            os.kill(worker.serving, signal.SIGKILL)
        assert worker.wait() == 3
        assert "error: the serving process dies again and again: killed (SIGKILL: out of memory?)" in worker.said


def test_quiet_says_nothing() -> None:
    with RunningWorker("-q") as worker:
        assert worker.endpoint
        worker.end()
        assert worker.said == ""


def test_an_address_in_use_is_refused_before_anything_is_loaded(
    worker: RunningWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["worker", "--port", str(port_of(worker.endpoint))]) == 2
    assert f"error: {worker.endpoint} is in use\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "no password and no encryption"),
        (["--host", "::1"], "IPv6"),
        (["--host", "192.0.2.1", "--expose"], "is not an address of this machine"),
        (["--port", "65536"], "--port 65536 is not in 0..65535"),
        (["--threads", "0"], "--threads 0 is not in 1..512"),
        (["--device", ""], '--device "" has an empty name'),
        (["--device", "CPU,CPU"], "--device names CPU twice"),
        (["--cache", os.devnull, "--port", "0"], f"--cache {os.devnull} cannot be used"),
    ],
)
def test_what_cannot_be_served_is_refused(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["worker", *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""


def test_a_device_that_is_not_here_is_refused_with_those_that_are() -> None:
    with RunningWorker("--device", "CPU,FPGA7") as worker:
        assert worker.wait() == 2
        assert worker.endpoint == ""
        assert worker.said == 'error: --device "FPGA7" is not a device of this machine\nhint: there are: CPU\n'


def test_an_exposed_one_says_what_that_means() -> None:
    with RunningWorker("--host", "0.0.0.0", "--expose") as worker:
        assert worker.end() == 0
        assert "note: other machines may reach this worker: a worker has no password and no encryption" in worker.said


def test_a_tensor_is_not_served_before_it_was_found_right(model: Path, tmp_path: Path) -> None:
    with RunningWorker("--cache", tmp_path) as worker:
        with clients(worker.endpoint, model, "never") as said:
            wait_for(said, "decoding 0")
            assert tensors(tmp_path) == []
            (written,) = tmp_path.glob("*.new")
            assert written.stat().st_size > 10 * MEGABYTE
        worker.wait_for("1 tensor of 0.02 GB checked and kept in the cache")
        (kept,) = tensors(tmp_path)
        assert hash_of(kept) == kept.name
        before = kept.stat()
        with clients(worker.endpoint, model, "decoding 0") as said:
            wait_for(said, "done")
        assert not list(tmp_path.glob("*.new")), "it was not sent again"
        assert kept.stat().st_mtime_ns == before.st_mtime_ns
        assert worker.end() == 0
    os.truncate(kept, 11 * MEGABYTE)
    with RunningWorker("--cache", tmp_path) as worker:
        worker.wait_for("1 tensor deleted from the cache, not whole")
        assert tensors(tmp_path) == []


def test_a_folder_of_another_worker_is_refused(tmp_path: Path) -> None:
    with RunningWorker("--cache", tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", "specdec_cli", "worker", "--port", "0", "--cache", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: --cache {tmp_path} belongs to another worker\n")
