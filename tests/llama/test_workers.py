"""Connecting to workers, holding the one connection, and what happens to the process when it breaks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.errors import ModelError
from specdec_cli.llama import keepalive, library, rpc_library, workers
from specdec_cli.llama.greeting import Greeting, greet
from specdec_cli.llama.rpc_library import protocol_version
from specdec_cli.llama.workers import Workers
from specdec_cli.settings import ModelPlacing, ModelSettings, Placing
from tests.engine import answer
from tests.fake_worker import answering, answers_of, listening
from tests.worker_process import PATIENCE, WorkerProcess, free_port

LOST = "Remote RPC server crashed or returned malformed response"
SOON = 0.5
"""Seconds of patience where nothing is going to come."""
OWN = protocol_version()
assert OWN is not None
DYING = """
import os, sys, threading, time
from specdec_cli.llama import library
from specdec_cli.llama.devices import describe
from specdec_cli.llama.workers import Workers
workers = Workers(sys.argv[1].split(","))
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    """One for all tests that leave it as it was."""
    with WorkerProcess() as started:
        yield started


def test_the_version_that_we_speak_is_what_our_own_server_says(worker: WorkerProcess) -> None:
    assert f"Starting RPC server v{'.'.join(map(str, OWN or ()))}\n" in worker.output


def test_where_no_process_can_be_started_the_own_version_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert protocol_version.__wrapped__() is None


def test_devices_of_several_workers_are_in_the_order_of_their_endpoints(worker: WorkerProcess) -> None:
    with WorkerProcess(devices=2) as second:
        connected = Workers([second.endpoint, worker.endpoint])
        try:
            assert [each.endpoint for each in connected.devices] == [second.endpoint] * 2 + [worker.endpoint]
            assert [each.endpoint for each in connected.greetings] == [second.endpoint, worker.endpoint]
            assert all(each.pointer and 0 < each.free <= each.total for each in connected.devices)
        finally:
            connected.close()


def test_without_endpoints_nothing_is_asked_of_llama_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "check_built", lambda: pytest.fail("asked"))
    connected = Workers([])
    connected.close()
    assert (connected.devices, connected.greetings) == ((), ())


def test_a_whole_answer_takes_one_connection_besides_the_greeting(attention_pair: Pair) -> None:
    with WorkerProcess() as alone:
        before = alone.connections
        placing = Placing(rpc=(alone.endpoint,), target=ModelPlacing(gpu_layers=-1))
        remote = answer(attention_pair, max_tokens=20, settings=ModelSettings(threads=1, placing=placing))
        alone.wait_for(before + 2)
        assert alone.connections == before + 2
    assert remote.text == answer(attention_pair, max_tokens=20).text


def test_a_plug_in_whose_functions_are_out_of_reach_is_held_too(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach = library.ggml

    def ggml(name: str, *signature: object) -> object:
        if name.startswith("ggml_backend_rpc"):
            raise AttributeError(name)
        return reach(name, *signature)

    monkeypatch.setattr(rpc_library, "ggml", ggml)
    connected = Workers([worker.endpoint])
    try:
        with pytest.raises(ModelError, match="serves another client"):
            greet(worker.endpoint, patience=SOON)
    finally:
        connected.close()
    greet(worker.endpoint)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the options by their names on Linux")
def test_the_kernel_asks_a_silent_worker_whether_it_is_still_there(worker: WorkerProcess) -> None:
    with listening(lambda client: client.recv(1)) as elsewhere:
        port = int(elsewhere.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as other, closing(Workers([worker.endpoint])):
            before = len(keepalive._descriptors())
            copies = keepalive._connections_to(worker.endpoint)
            copy = next(copies)
            assert copy.getpeername() == ("127.0.0.1", worker.port)
            assert copy.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            assert [copy.getsockopt(socket.IPPROTO_TCP, each) for each in options] == [10, 3, 3]
            assert copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 0, "a long pass would be cut"
            assert next(copies, None) is None
            assert other.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
            keepalive.keep_alive(worker.endpoint)
            assert len(keepalive._descriptors()) == before, "a copy is left open"


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_another_version_is_refused_before_anything_is_sent_in_it(changed: int) -> None:
    assert OWN is not None
    version = [number + (place == changed) for place, number in enumerate(OWN)]
    with listening(answering(answers_of(*version))) as endpoint, pytest.raises(ModelError) as caught:
        Workers([endpoint])
    theirs, ours = (".".join(map(str, each)) for each in (version, OWN))
    assert (
        caught.value.message == f"worker {endpoint} speaks version {theirs} of the protocol, and this llama.cpp {ours}"
    )
    assert "the same version of llama-cpp-python" in caught.value.hint


def test_two_names_of_one_worker_are_refused(worker: WorkerProcess) -> None:
    names = worker.endpoint, f"localhost:{worker.port}"
    with pytest.raises(ModelError, match=f"workers {names[0]} and {names[1]} are the same one"):
        Workers(names)


def test_a_worker_that_is_absent_costs_the_others_nothing(worker: WorkerProcess) -> None:
    before = worker.connections
    with listening(lambda _: None) as absent, pytest.raises(ModelError, match=absent):
        Workers([worker.endpoint, absent])
    worker.wait_for(before + 1)
    assert worker.connections == before + 1, "it was connected before all were greeted"
    assert workers._known == []


def test_a_client_that_comes_in_between_is_no_hang_and_the_others_are_left(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second greeting is followed at once by another client, which stays."""
    with WorkerProcess() as second:
        intruders: list[socket.socket] = []

        def greet_and_let_in(endpoint: str, *, patience: float) -> Greeting:
            greeted = greet(endpoint, patience=patience)
            if endpoint == second.endpoint:
                second.wait_for(2)
                intruders.append(socket.create_connection(("127.0.0.1", second.port)))
            return greeted

        monkeypatch.setattr(workers, "greet", greet_and_let_in)
        with pytest.raises(ModelError, match=f"worker {second.endpoint} serves another client") as caught:
            Workers([worker.endpoint, second.endpoint], patience=1.0)
        assert "one client at a time" in caught.value.hint
        greet(worker.endpoint)
        intruders[0].close()
        greet(second.endpoint, patience=PATIENCE)  # the connection that nobody waits for is left again


@contextmanager
def silent() -> Iterator[str]:
    """The endpoint of what accepts and says nothing until the end."""
    done = Event()
    with listening(lambda _: done.wait(PATIENCE)) as endpoint:
        yield endpoint
        done.set()


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_ctrl_c_ends_the_wait_for_an_answer() -> None:
    with silent() as endpoint, pytest.raises(KeyboardInterrupt):
        Workers([endpoint], patience=PATIENCE, check=_interrupt)
    assert workers._known == []


def test_ctrl_c_ends_the_wait_for_a_connection_which_is_left_once_it_comes(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, asked, left, go = rpc_library.hold, Event(), Event(), Event()

    def hold_later(address: str) -> int:
        asked.set()
        go.wait(PATIENCE)
        return connect(address)

    def check() -> None:
        if asked.is_set():
            _interrupt()

    def leave(backend: int) -> None:
        rpc_library.release(backend)
        left.set()

    monkeypatch.setattr(workers, "hold", hold_later)
    monkeypatch.setattr(workers, "release", leave)
    with pytest.raises(KeyboardInterrupt):
        Workers([worker.endpoint], check=check)
    go.set()
    assert left.wait(PATIENCE)
    greet(worker.endpoint, patience=PATIENCE)


def test_one_that_is_absent_ends_the_wait_for_one_that_says_nothing() -> None:
    absent = f"127.0.0.1:{free_port()}"
    with silent() as endpoint, pytest.raises(ModelError, match=f"worker {absent}: nothing listens there"):
        Workers([endpoint, absent], patience=PATIENCE)


def test_a_llama_cpp_without_rpc_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reach = library.ggml

    def ggml(name: str, *signature: object) -> object:
        return (lambda _: None) if name == "ggml_backend_reg_by_name" else reach(name, *signature)

    monkeypatch.setattr(rpc_library, "ggml", ggml)
    with pytest.raises(ModelError, match="built without RPC") as caught:
        Workers(["127.0.0.1:1"])
    assert "-DGGML_RPC=ON" in caught.value.hint


def _die(code: str, *killed: WorkerProcess) -> tuple[int, str, str]:
    """Run `code`, which has `workers` and says that it is ready, and kill these; it hears a line then."""
    process = subprocess.Popen(
        [sys.executable, "-c", DYING + code, ",".join(each.endpoint for each in killed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent), "PYTHONUNBUFFERED": ""},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()
    for each in killed:
        each.kill()
    out, err = process.communicate("\n", timeout=PATIENCE)
    return process.returncode, out, err


def test_a_worker_lost_in_the_thread_of_ggml_ends_a_program_without_a_handler_in_one_line() -> None:
    code = """
print("ready", flush=True)
sys.stdin.readline()
sys.stdout.write("held back")
describe(workers.devices[0].pointer)
print("never")
"""
    with WorkerProcess() as worker:
        code_, out, err = _die(code, worker)
    assert (code_, out) == (3, "held back")
    assert err == f"llama.cpp stopped: {LOST}\n"


def test_the_handler_runs_while_the_main_thread_waits_inside_c_and_only_the_first_loss_speaks() -> None:
    """Both connections break at the same moment; the handler of the first takes its time."""
    code = """
def leave(message):
    print(message, threading.current_thread() is threading.main_thread(), flush=True)
    time.sleep(0.3)
library.on_abort(leave)
print("ready", flush=True)
sys.stdin.readline()
for each in workers.devices:
    threading.Thread(target=describe, args=(each.pointer,)).start()
"""
    with WorkerProcess() as first, WorkerProcess() as second:
        code_, out, err = _die(code, first, second)
    assert (code_, err) == (3, "")
    assert out == f"{LOST} False\n"


def test_a_handler_that_fails_does_not_keep_the_process_alive() -> None:
    code = """
library.on_abort(lambda message: 1 / 0)
print("ready", flush=True)
sys.stdin.readline()
describe(workers.devices[0].pointer)
"""
    with WorkerProcess() as worker:
        assert _die(code, worker)[0] == 3


def test_leaving_lets_the_next_client_in(worker: WorkerProcess) -> None:
    for _ in range(2):
        connected = Workers([worker.endpoint])
        connected.close()
        connected.close()  # twice is once
    greet(worker.endpoint, patience=PATIENCE)
