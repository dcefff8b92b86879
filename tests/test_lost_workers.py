"""A worker dies in the middle of an answer: the text so far, one line that names it, code 3, the terminal intact."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.cli import run
from tests.pty_process import PATIENCE, PtyProcess
from tests.spoken import repeats
from tests.worker_process import WorkerProcess, free_port

LOOP: Final = "tick "
NEVER: Final = f"{LOOP}{LOOP}tock"
"""A stop text that the answer always seems to begin, so that its last words are held back."""


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says LOOP for longer than any test waits."""
    return repeats(LOOP, tmp_path_factory.mktemp("endless") / "endless.gguf")


@pytest.fixture
def workers() -> Iterator[tuple[WorkerProcess, WorkerProcess]]:
    """The one that is going to die, and one that stays."""
    with WorkerProcess() as dying, WorkerProcess() as staying:
        yield dying, staying


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and the records of its trace."""

    code: int
    out: str
    err: str
    trace: list[dict[str, Any]]

    @property
    def tokens(self) -> int:
        """How many the trace saw."""
        return sum(len(each["emitted"]) for each in self.trace if each["type"] == "round")


def arguments(command: str, endless: Path, workers: tuple[WorkerProcess, WorkerProcess]) -> list[object]:
    rpc = ",".join(each.endpoint for each in workers)
    return [command, "-m", endless, "-k", 2, "-c", 60_000, "--threads", 1, "--stop", NEVER, "--rpc", rpc]


def lose(endless: Path, workers: tuple[WorkerProcess, WorkerProcess], trace: Path, *more: object) -> Outcome:
    """Generate into a pipe, and kill the first worker once some rounds are in the trace."""
    command = [*arguments("generate", endless, workers), "--trace", trace, *more, "hello"]
    process = subprocess.Popen(
        [sys.executable, "-m", "specdec_cli", *map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + PATIENCE
    while not trace.exists() or trace.read_bytes().count(b'"round"') < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    workers[0].kill()
    out, err = process.communicate(timeout=PATIENCE)
    records = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    return Outcome(process.returncode, out.decode(), err.decode(), records)


def assert_named(said: str, worker: WorkerProcess) -> None:
    """One line names the worker, one says the way out, and nothing else is said of it."""
    error, hint = said.splitlines()[-2:]
    assert error == f"error: worker {worker.endpoint} is lost: nothing listens there any more"
    assert hint.startswith("hint: ")
    assert "Traceback" not in said
    assert said.count("error: ") == 1


def test_a_pipe_gets_all_that_was_said_what_was_held_back_too(
    endless: Path, workers: tuple[WorkerProcess, WorkerProcess], tmp_path: Path
) -> None:
    lost = lose(endless, workers, tmp_path / "trace")
    assert lost.code == 3
    assert lost.tokens > 2
    assert lost.out == LOOP * lost.tokens
    assert_named(lost.err, workers[0])
    assert lost.trace[-1]["type"] == "end"
    assert lost.trace[-1]["finish_reason"] == "failed"


def test_json_is_whole_and_says_that_the_answer_failed(
    endless: Path, workers: tuple[WorkerProcess, WorkerProcess], tmp_path: Path
) -> None:
    lost = lose(endless, workers, tmp_path / "trace", "--json", "--memory", tmp_path / "memory", "-d", "lookup")
    answer = json.loads(lost.out)
    assert lost.code == 3
    assert answer["finish_reason"] == "failed"
    assert answer["tokens"] == lost.tokens > 2
    assert answer["text"] == LOOP * answer["tokens"]
    assert_named(lost.err, workers[0])
    assert (tmp_path / "memory").stat().st_size > 0


def test_the_other_worker_serves_on(
    endless: Path, workers: tuple[WorkerProcess, WorkerProcess], tmp_path: Path
) -> None:
    lose(endless, workers, tmp_path / "trace")
    workers[1].wait_for(3)
    with WorkerProcess(port=workers[0].port) as again:
        assert lose(endless, (again, workers[1]), tmp_path / "again").tokens > 2


def _lose_on(screen: PtyProcess, worker: WorkerProcess) -> list[Any]:
    """Kill `worker` once the answer goes on, and wait for the end; the modes of the terminal then."""
    screen.wait_for("tok/s")
    worker.kill()
    screen.wait_for("hint: ")
    screen._process.wait(PATIENCE)
    return termios.tcgetattr(screen.slave)


def test_a_terminal_is_left_as_it_was(endless: Path, workers: tuple[WorkerProcess, WorkerProcess]) -> None:
    with PtyProcess([*arguments("generate", endless, workers), "hello"], columns=100) as screen:
        before = termios.tcgetattr(screen.slave)
        assert _lose_on(screen, workers[0]) == before
        assert screen.wait() == 3
        lines = screen.lines()
        assert_named("\n".join(lines), workers[0])
        text = "".join(line for line in lines if line.startswith(LOOP.strip()))
        assert text.replace(" ", "").replace("tick", "") == "", "the live line is gone, and no word is cut"
        assert screen.shows_cursor


def test_a_chat_keeps_in_its_file_what_was_said(
    endless: Path, workers: tuple[WorkerProcess, WorkerProcess], tmp_path: Path
) -> None:
    kept = tmp_path / "chat.json"
    own = {"XDG_STATE_HOME": str(tmp_path)}
    command = [*arguments("chat", endless, workers), "--session", kept]
    with PtyProcess(command, columns=100, environment=own) as screen:
        before = termios.tcgetattr(screen.slave)
        screen.wait_for("/help lists commands")
        screen.press(b"hello\r")
        assert _lose_on(screen, workers[0]) == before
        assert screen.wait() == 3
        assert_named("\n".join(screen.lines()), workers[0])
        assert screen.shows_cursor
    question, answer = json.loads(kept.read_text("utf-8"))["messages"]
    assert question == {"role": "user", "content": "hello"}
    assert answer["content"].replace(LOOP, "") == ""
    assert answer["content"]


def test_a_worker_that_is_lost_while_nobody_asks_is_named_at_the_next_question(
    endless: Path, workers: tuple[WorkerProcess, WorkerProcess], tmp_path: Path
) -> None:
    own = {"XDG_STATE_HOME": str(tmp_path)}
    with PtyProcess([*arguments("chat", endless, workers), "-n", 3], columns=100, environment=own) as screen:
        before = termios.tcgetattr(screen.slave)
        screen.wait_for("/help lists commands")
        workers[0].kill()
        screen.press(b"hello\r")
        screen.wait_for("hint: ")
        screen._process.wait(PATIENCE)
        assert termios.tcgetattr(screen.slave) == before
        assert screen.wait() == 3
        assert_named("\n".join(screen.lines()), workers[0])


def press_until_it_ends(screen: PtyProcess, keys: bytes) -> None:
    deadline = time.monotonic() + PATIENCE
    while screen._process.poll() is None:
        assert time.monotonic() < deadline
        screen.press(keys)
        time.sleep(0.3)


def test_a_second_ctrl_c_ends_the_wait_for_a_worker_that_hangs(
    endless: Path, workers: tuple[WorkerProcess, WorkerProcess]
) -> None:
    with PtyProcess([*arguments("generate", endless, workers), "hello"], columns=100) as screen:
        before = termios.tcgetattr(screen.slave)
        screen.wait_for("tok/s")
        workers[0].stop()
        time.sleep(0.3)  # for the pass that it may still answer
        press_until_it_ends(screen, b"\x03")
        assert termios.tcgetattr(screen.slave) == before
        assert screen.wait() == 130
        said = "\n".join(screen.lines())
    assert f"\nerror: Ctrl-C ended the wait for worker {' or '.join(each.endpoint for each in workers)}\n" in said
    assert "Traceback" not in said


def test_ctrl_c_ends_the_wait_for_a_worker_that_does_not_answer(
    endless: Path, workers: tuple[WorkerProcess, WorkerProcess]
) -> None:
    """What it says of the worker would come later, with another code."""
    with socket.create_connection(("127.0.0.1", workers[0].port)):
        workers[0].stop()
        with PtyProcess([*arguments("generate", endless, workers), "hello"], columns=100) as screen:
            before = termios.tcgetattr(screen.slave)
            workers[1].wait_for(2)  # the other one is greeted by now
            screen.press(b"\x03")
            screen._process.wait(PATIENCE)
            assert termios.tcgetattr(screen.slave) == before
            assert screen.wait() == 130
            assert "error" not in "\n".join(screen.lines())


def test_a_second_ctrl_c_ends_the_wait_for_a_cache_that_does_not_come(
    endless: Path, workers: tuple[WorkerProcess, WorkerProcess], tmp_path: Path
) -> None:
    kept, own = tmp_path / "chat.json", {"XDG_STATE_HOME": str(tmp_path)}
    command = [*arguments("chat", endless, workers), "-n", 3, "--session", kept, "--save-cache"]
    with PtyProcess(command, columns=100, environment=own) as screen:
        before = termios.tcgetattr(screen.slave)
        screen.wait_for("/help lists commands")
        screen.press(b"hello\r")
        screen.wait_for("tokens/s")
        workers[0].stop()
        press_until_it_ends(screen, b"\x04\x03")
        assert termios.tcgetattr(screen.slave) == before
        assert screen.wait() == 130
    assert len(json.loads(kept.read_text("utf-8"))["messages"]) == 2


def test_a_worker_that_is_absent_is_one_line_before_anything_loads(
    endless: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    endpoint = f"127.0.0.1:{free_port()}"
    assert run(["generate", "-m", str(endless), "--threads", "1", "--rpc", endpoint, "hello"]) == 3
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines()[0] == f"error: worker {endpoint}: nothing listens there"
    assert err.splitlines()[1].startswith("hint: ")
    assert len(err.splitlines()) == 2


PROGRAM = """
import os, sys
from specdec_cli import open_pair

with open_pair(sys.argv[1], draft="none", rpc=[sys.argv[2]], threads=1) as pair:
    for step in pair.generate("x", max_tokens=10_000_000, draft_tokens=0):
        os.kill(int(sys.argv[3]), 9)
"""


def test_a_program_that_loses_a_worker_ends_with_a_line_that_names_it(attention_pair: Pair) -> None:
    with WorkerProcess() as worker:
        arguments = [str(attention_pair.target), worker.endpoint, str(worker.pid)]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert done.returncode == 3
    *_, last = done.stderr.splitlines()
    assert last.startswith(f"specdec: worker {worker.endpoint} is lost: ")
    assert "Traceback" not in done.stderr
