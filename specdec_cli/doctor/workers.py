"""The workers that were asked about: what each says of itself, or why it cannot be used. None of them ends the report.

They are greeted over sockets of our own and never connected to: ggml would end this process if one were wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from specdec_cli.errors import ModelError
from specdec_cli.llama.devices import Device
from specdec_cli.llama.greeting import Greeting, Version, greet, spell
from specdec_cli.llama.rpc_library import protocol_version
from specdec_cli.llama.waiting import begin
from specdec_cli.llama.workers import check_version, name_of

KIND, BACKEND = "GPU", "RPC"
"""What ggml takes every device of a worker for, and what drives it."""
SLOW: Final = 0.03
"""Seconds of a round trip from which on a pass is mostly waiting."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker by its `endpoint`: its `greeting`, and the `problem` that it has, each None where there is none.

    `devices` are those that it lends, by the names that a session would give them.
    """

    endpoint: str
    greeting: Greeting | None = None
    problem: ModelError | None = None
    devices: tuple[Device, ...] = ()

    @property
    def version(self) -> str:
        """Of its protocol; empty if that is not known."""
        return "" if self.greeting is None else spell(self.greeting.version)


def greet_workers(endpoints: Sequence[str], *, loads: bool) -> tuple[Worker, ...]:
    """Greet all at once, which takes seconds where one does not answer. Versions are compared if llama.cpp `loads`."""
    if not endpoints:
        return ()
    own = begin(lambda: protocol_version() if loads else None)
    greeted = [begin(partial(_greet, each)) for each in endpoints]
    found: list[Worker] = []
    for worker in (each.result() for each in greeted):
        found.append(_check(worker, own.result(), first=sum(len(each.devices) for each in found)))
    return tuple(found)


def _greet(endpoint: str) -> Worker:
    try:
        return Worker(endpoint, greet(endpoint))
    except ModelError as error:
        return Worker(endpoint, problem=error)


def _check(worker: Worker, own: Version | None, *, first: int) -> Worker:
    """`worker` with its devices, numbered from `first` on, or with the problem that it speaks another version."""
    greeting = worker.greeting
    if greeting is None:
        return worker
    try:
        check_version(greeting, own)
    except ModelError as problem:
        return Worker(worker.endpoint, greeting, problem)
    devices = [
        Device(name_of(number), worker.endpoint, KIND, BACKEND, free, total, worker.endpoint)
        for number, (free, total) in enumerate(greeting.memory or (), first)
    ]
    return Worker(worker.endpoint, greeting, None, tuple(devices))
