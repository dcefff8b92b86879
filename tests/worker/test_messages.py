"""What the process that serves tells, through the very output that C prints to."""

from __future__ import annotations

import subprocess
import sys

import pytest

from specdec_cli.errors import EXIT_MODEL
from specdec_cli.worker.messages import Message, Ready, Refused, Stopped, tell, to_message

GIVES_UP = """
from specdec_cli.llama import library
from specdec_cli.worker import serving
library.on_abort(serving._give_up)
library._report_abort(b"ggml.c:17: GGML_ASSERT(a < b) failed")
"""


@pytest.mark.parametrize(
    "message",
    [Ready(("CPU: a, b",), 3), Ready((), 1), Refused("no\nsuch", "a “hint”", 2), Stopped("GGML_ASSERT(x) failed")],
)
def test_a_message_arrives_as_it_was_sent_in_one_line(message: Message, capfd: pytest.CaptureFixture[str]) -> None:
    tell(message)
    line, end, rest = capfd.readouterr().out.partition("\n")
    assert (end, rest) == ("\n", "")
    assert to_message(line) == message


def test_what_ggml_prints_is_no_message() -> None:
    assert to_message("Accepted client connection") is None
    assert to_message("") is None


def test_a_failed_assertion_is_told_and_ends_the_process_without_a_core() -> None:
    done = subprocess.run([sys.executable, "-c", GIVES_UP], capture_output=True, text=True, check=False)
    assert to_message(done.stdout.strip()) == Stopped("GGML_ASSERT(a < b) failed")
    assert (done.returncode, done.stderr) == (EXIT_MODEL, "")
