"""Which worker is lost, or has no room, in words."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.errors import ModelError
from specdec_cli.llama import losses, workers
from specdec_cli.llama.greeting import Greeting
from specdec_cli.llama.losses import explain_loss, explain_refusal
from specdec_cli.settings import ModelPlacing, ModelSettings, Placing
from tests.engine import answer
from tests.fake_worker import listening
from tests.worker_process import WorkerProcess

LOST = "Remote RPC server crashed or returned malformed response"
SOON = 0.5
"""Seconds of patience where nothing is going to come."""


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    """One for all tests that leave it as it was."""
    with WorkerProcess() as started:
        yield started


def test_what_llama_cpp_gives_up_on_for_other_reasons_is_no_loss() -> None:
    assert explain_loss("evaluating target x: GGML_ASSERT(false) failed") is None


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes workers known as if they were connected, and does not wait long for those that say nothing."""
    monkeypatch.setattr(losses, "PROBING", SOON)

    def know(*endpoints: str) -> None:
        greetings = [Greeting(each, (7, 0, 0), 0.0, None, each) for each in endpoints]
        monkeypatch.setattr(workers, "_known", greetings)

    return know


def test_of_two_workers_the_one_that_is_dead_is_named(known: Callable[..., None]) -> None:
    with WorkerProcess() as dead, WorkerProcess() as alive, socket.create_connection(("127.0.0.1", alive.port)):
        known(alive.endpoint, dead.endpoint)
        dead.kill()
        told = explain_loss(f"evaluating target x: {LOST}")
    assert told == (
        f"worker {dead.endpoint} is lost: nothing listens there any more",
        "start specdec worker there again, if it does not do so by itself",
    )


def test_a_worker_that_dropped_us_and_is_free_again_is_named(known: Callable[..., None], worker: WorkerProcess) -> None:
    with WorkerProcess() as alive, socket.create_connection(("127.0.0.1", alive.port)):
        known(alive.endpoint, worker.endpoint)
        told = explain_loss(LOST)
    assert told is not None
    assert told[0] == f"worker {worker.endpoint} is lost: it dropped the connection, and is free again"
    assert "memory" in told[1]


def test_two_that_die_at_once_are_both_named(known: Callable[..., None]) -> None:
    with WorkerProcess() as first, WorkerProcess() as second:
        known(first.endpoint, second.endpoint)
        first.kill()
        second.kill()
        told = explain_loss(LOST)
    assert told == (f"workers {first.endpoint} and {second.endpoint} are lost", losses.LOSSES["refused"][1])


def test_a_worker_that_is_just_dying_is_dead(known: Callable[..., None]) -> None:
    """The kernel accepts one greeting more, in both of its forms, before it closes the socket."""
    server = socket.create_server(("127.0.0.1", 0))

    def die() -> None:
        for _ in range(2):
            server.accept()[0].close()
        server.close()

    thread = threading.Thread(target=die)
    thread.start()
    endpoint = f"127.0.0.1:{server.getsockname()[1]}"
    known(endpoint)
    told = explain_loss(LOST)
    thread.join()
    assert told == (f"worker {endpoint} is lost: nothing listens there any more", losses.LOSSES["refused"][1])


def test_where_it_cannot_be_told_both_are_named(known: Callable[..., None]) -> None:
    quiet = threading.Event()
    with listening(lambda _: quiet.wait()) as first, listening(lambda _: quiet.wait()) as second:
        known(first, second)
        told = explain_loss(LOST)
        quiet.set()
    assert told is not None
    assert told[0] == f"a worker is lost: {first} or {second}"


def test_the_only_worker_is_named_even_if_it_says_nothing(known: Callable[..., None]) -> None:
    quiet = threading.Event()
    with listening(lambda _: quiet.wait()) as only:
        known(only)
        told = explain_loss(LOST)
        quiet.set()
    assert told is not None
    assert told[0].startswith(f"worker {only} is lost: ")


def test_a_worker_that_ggml_itself_names_is_believed(known: Callable[..., None], worker: WorkerProcess) -> None:
    with listening(lambda _: None) as gone:
        known(gone, worker.endpoint)
        told = explain_loss(f"loading target x: Failed to connect to {gone}")
    assert told is not None
    assert told[0] == f"worker {gone} is lost: nothing serves there any more"


def test_a_loss_without_any_known_worker_is_still_told(known: Callable[..., None]) -> None:
    known()
    assert explain_loss(LOST) == ("a worker is lost", losses.LOSSES["busy"][1])


def test_memory_that_a_worker_lacks_is_told_with_its_name_and_a_way_out(attention_pair: Pair) -> None:
    with WorkerProcess(room=200 << 20) as small:
        settings = ModelSettings(
            threads=1, ctx_size=4_000_000, placing=Placing(rpc=(small.endpoint,), target=ModelPlacing(gpu_layers=-1))
        )
        with pytest.raises(ModelError) as caught:
            answer(attention_pair, max_tokens=4, settings=settings)
    assert f"worker {small.endpoint} has not enough memory for " in caught.value.message
    assert "MB more" in caught.value.message
    assert str(attention_pair.target) in caught.value.message
    assert "--ctx-size" in caught.value.hint


def test_other_refusals_keep_their_words(known: Callable[..., None]) -> None:
    known("127.0.0.1:1")
    for reason in ("unable to allocate CPU buffer", "tensor 'x' not found", "RPC0[127.0.0.1:1] says something"):
        assert explain_refusal(reason, "so") == (reason, "so")
