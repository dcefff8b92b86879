"""The process that serves, without the one that looks after it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import Any

from specdec_cli.worker.child import Child, Ended, Printed
from specdec_cli.worker.messages import Ready, Refused, to_message
from specdec_cli.worker.plan import Plan
from specdec_cli.worker.supervising import NO_SOCKET

PATIENCE = 60.0


def plan(port: int, *devices: str, threads: int | None = 1) -> Plan:
    return Plan("127.0.0.1", port, devices, threads, caches=False, verbose=False)


def events_of(child_plan: Plan) -> list[Any]:
    """What a process says that ends by itself."""
    events: SimpleQueue[Any] = SimpleQueue()
    child = Child(child_plan, events, None, None)
    told: list[Any] = []
    try:
        while not told or not isinstance(told[-1], Ended):
            told.append(events.get(timeout=PATIENCE))
    finally:
        child.end()
    return told


def test_an_address_that_was_taken_meanwhile_ends_it_with_ggmls_own_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = events_of(plan(taken.getsockname()[1]))
    assert told[-1] == Ended(NO_SOCKET)
    assert not any(isinstance(to_message(each.text), Ready) for each in told if isinstance(each, Printed))


def test_a_device_that_is_not_here_is_told_as_the_user_will_read_it() -> None:
    told = events_of(plan(0, "FPGA7"))
    (refused,) = [message for each in told[:-1] if isinstance(message := to_message(each.text), Refused)]
    assert 'FPGA7" is not a device' in refused.message
    assert refused.exit_code == 2


def test_it_is_not_left_alone_when_nobody_holds_its_standard_input() -> None:
    arguments = [sys.executable, "-P", "-m", "specdec_cli.worker.serving", plan(0).to_text()]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        patience = threading.Timer(PATIENCE, process.kill)
        patience.start()
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 3
        patience.cancel()
