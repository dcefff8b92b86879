"""The process that serves: ggml's RPC server, which never returns, and what must go on beside it.

`python -P -m specdec_cli.worker.serving PLAN` is started by the process that looks after it, which holds the other end
of standard input, and in the folder of the tensor cache if there is one. It ends when that process does.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from specdec_cli.errors import EXIT_MODEL, SpecdecError
from specdec_cli.llama import library
from specdec_cli.llama.devices import Device, usable_cpus
from specdec_cli.llama.keepalive import can_look
from specdec_cli.llama.rpc_library import start_server
from specdec_cli.worker.lending import choose_devices, describe
from specdec_cli.worker.listening import find_listening, watch_clients
from specdec_cli.worker.messages import Ready, Refused, Stopped, tell
from specdec_cli.worker.plan import Plan

SAVED: Final = re.compile(r"\bsaved to '(?:.*/)?([0-9a-f]{16})'")
"""What ggml logs in the thread that has just written a tensor to the cache, before it does anything else."""
SECONDS_BETWEEN_LOOKS: Final = 0.01
SECONDS_TO_LISTEN: Final = 1.0
"""How long it takes at most until ggml listens, where it cannot be seen."""


def main() -> None:
    """Serve what the plan says until this process is ended."""
    for each in (signal.SIGINT, signal.SIGTERM):  # sent to both processes; the other one ends this
        signal.signal(each, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _leave_no_core()
    plan = Plan.from_text(sys.argv[1])
    library.on_abort(_give_up)
    library.show_log(_Log(verbose=plan.verbose).take)
    try:
        _serve(plan, choose_devices(plan.devices))
    except SpecdecError as error:
        tell(Refused(error.message, error.hint, error.exit_code))
    os._exit(EXIT_MODEL)


def _serve(plan: Plan, devices: Sequence[Device]) -> None:
    """It returns only if nothing can be served; ggml has printed the reason then."""
    threads = plan.threads or usable_cpus()
    ready = Ready(tuple(describe(device) for device in devices), threads)
    threading.Thread(target=_announce, args=(plan, ready), daemon=True).start()
    cache = os.curdir if plan.caches else None
    start_server(str(plan.address), cache, threads, [device.pointer for device in devices])


def _announce(plan: Plan, ready: Ready) -> None:
    """Say that clients can come, once ggml listens for them."""
    if can_look():
        while (listening := find_listening(plan.host, plan.port)) is None:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        with listening:
            watch_clients(listening)
    else:
        time.sleep(SECONDS_TO_LISTEN)
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).fflush(None)  # to a pipe C prints only when it has a lot to say
    tell(ready)


def _end_with_parent() -> None:
    """Whatever ends the other process, its end of this pipe is closed then."""
    while os.read(0, 1):
        pass
    os._exit(EXIT_MODEL)


def _leave_no_core() -> None:
    """A crash is the other process's to tell; a copy of gigabytes of weights on the disk helps nobody."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _give_up(message: str) -> None:
    tell(Stopped(message))
    os._exit(EXIT_MODEL)


class _Log:
    """llama.cpp's log: told line by line if it is `verbose`, and read for tensors that were just written."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._line = ""

    def take(self, text: str) -> None:
        if saved := SAVED.search(text):
            _hide(saved[1])
        *lines, self._line = (self._line + text).split("\n")
        for line in lines if self._verbose else ():
            os.write(2, f"{line}\n".encode())


def _hide(name: str) -> None:
    from specdec_cli.worker.tensor_cache import set_aside

    try:
        set_aside(name)
    except OSError as error:
        _give_up(f"the tensor {name} can be neither checked nor hidden: {error.strerror}")


if __name__ == "__main__":
    main()
