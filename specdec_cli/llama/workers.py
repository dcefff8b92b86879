"""Connections of this process to workers, which lend it their devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Final

from specdec_cli.errors import ModelError
from specdec_cli.llama.devices import Device, describe
from specdec_cli.llama.greeting import Greeting, Version, greet, spell
from specdec_cli.llama.keepalive import keep_alive, shut_down
from specdec_cli.llama.rpc_library import check_built, hold, lent_devices, protocol_version, release
from specdec_cli.llama.waiting import begin, ended

Check = Callable[[], object]

PATIENCE: Final = 5.0
"""Seconds for a worker to answer."""
_known: list[Greeting] = []
_given_up = Event()


def break_connections() -> None:
    """Give up on all workers, whatever they do: C code that waits for one ends the process, see `library.on_abort`."""
    _given_up.set()
    for greeting in _known:
        shut_down(greeting.address)


def given_up() -> bool:
    """Whether that is what broke them."""
    return _given_up.is_set()


def known() -> tuple[Greeting, ...]:
    """The workers that this process is connected to, or about to be."""
    return tuple(_known)


class Workers:
    """The workers of a session, connected as long as it lasts. `devices` are theirs, in order, and so numbered.

    Each gets `patience` seconds to answer. `check` is called while they are waited for, and may raise.

    Raises:
        ModelError: see `greet`; or one speaks another version of the protocol than this llama.cpp.
    """

    def __init__(self, endpoints: Sequence[str], *, patience: float = PATIENCE, check: Check = lambda: None) -> None:
        self.greetings: tuple[Greeting, ...] = ()
        self.devices: tuple[Device, ...] = ()
        self._held: list[int] = []
        if not endpoints:
            return
        check_built()
        self.greetings = _greet_all(endpoints, patience, check)
        _known.extend(self.greetings)
        try:
            for greeting in self.greetings:
                self._held.append(_hold_in_time(greeting, patience, check))
                keep_alive(greeting.address)
                self.devices += _describe_all(greeting, first=len(self.devices))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave them; every model on their devices must be freed first."""
        while self._held:
            release(self._held.pop())
        for greeting in self.greetings:
            if greeting in _known:
                _known.remove(greeting)


def _greet_all(endpoints: Sequence[str], patience: float, check: Check) -> tuple[Greeting, ...]:
    """All at once; the first of them that cannot be greeted ends the wait for the others."""
    own = begin(protocol_version)
    greeted = [begin(partial(greet, each, patience=patience)) for each in endpoints]
    ended([own, *greeted], math.inf, check)
    greetings = tuple(each.result() for each in greeted)
    for greeting in greetings:
        check_version(greeting, own.result())
    _check_different(greetings)
    return greetings


def _check_different(greetings: Sequence[Greeting]) -> None:
    """Refuse two names of one worker, whose memory would count twice."""
    names: dict[str, str] = {}
    for each in greetings:
        other = names.setdefault(each.address, each.endpoint)
        if other != each.endpoint:
            raise ModelError(f"workers {other} and {each.endpoint} are the same one", hint="name it once")


def check_version(greeting: Greeting, own: Version | None) -> None:
    """Refuse any other version: ggml lets another patch pass, but that counts operations, whose numbers it sends.

    Raises:
        ModelError: it is another one.
    """
    if own is not None and greeting.version != own:
        theirs = spell(greeting.version)
        raise ModelError(
            f"worker {greeting.endpoint} speaks version {theirs} of the protocol, and this llama.cpp {spell(own)}",
            hint="install the same version of llama-cpp-python on both machines",
        )


def _hold_in_time(greeting: Greeting, patience: float, check: Check) -> int:
    """Connect for good. Another client may have come in between, for which C code would wait as long as it takes."""
    connecting = begin(partial(hold, greeting.address), undo=release)
    try:
        in_time = ended([connecting], patience, check)
    except BaseException:
        if not connecting.cancel():
            release(connecting.result())
        raise
    if not in_time and connecting.cancel():
        raise ModelError(
            f"worker {greeting.endpoint} serves another client, which came in just now",
            hint="a worker serves one client at a time: wait for the other one to end, or start a second worker",
        )
    return connecting.result()


def name_of(number: int) -> str:
    """What device `number` of all that the workers of a session lend is called, counted from 0."""
    return f"RPC{number}"


def _describe_all(greeting: Greeting, *, first: int) -> tuple[Device, ...]:
    """Its devices, numbered from `first` on: ggml counts all that this process ever had."""
    lent = [describe(each, greeting.endpoint) for each in lent_devices(greeting.address)]
    devices = tuple(replace(each, name=name_of(number)) for number, each in enumerate(lent, first))
    if greeting.memory is not None and len(devices) != len(greeting.memory):
        raise ModelError(
            f"worker {greeting.endpoint} lends {len(greeting.memory)} devices, and lent {len(devices)} before",
            hint="start this program again: it keeps what it learned of a worker",
        )
    return devices
