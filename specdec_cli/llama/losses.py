"""What it means for us that a worker is lost or has no room, in words that name it: llama.cpp says little of either."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Final

from specdec_cli.llama.greeting import Fault, Greeting, GreetingError, greet
from specdec_cli.llama.workers import given_up, known

PROBING: Final = 1.5
"""Seconds to find out which worker is lost; the user waits for the last words."""
DYING: Final = 0.2
"""Seconds that the kernel may take to close what a process had open."""
SIGNS_OF_LOSS: Final = ("Remote RPC server crashed", "Failed to connect to ", "RPC handshake failed for ")
"""What ggml says as it gives up on a worker."""
LOSSES: Final[dict[Fault | None, tuple[str, str]]] = {
    "refused": ("nothing listens there any more", "start specdec worker there again, if it does not do so by itself"),
    "unknown": ("its name is unknown by now", "check the network of this machine"),
    "unreachable": ("it cannot be reached any more", "is that machine up, and the network between?"),
    "closed": ("nothing serves there any more", "start specdec worker again at the end of the tunnel"),
    "foreign": ("something else listens there now", "start specdec worker there again"),
    "busy": ("the connection broke, and it does not answer", "look at what the worker says: it may hang"),
    None: (
        "it dropped the connection, and is free again",
        "look at what the worker says: it may have run out of memory, or been started anew",
    ),
}
"""What became of a worker, by how it can be greeted now, and the way out. None: well."""
LESS_THERE: Final = "put less there by --ctx-size, --tensor-split or --gpu-layers, or add a worker"


def explain_loss(message: str) -> tuple[str, str] | None:
    """What the last message of llama.cpp says of a worker, as one line with a hint; None if it is about none.

    It names no worker where the connection broke, so all are greeted: one that still serves us does not answer.
    """
    if not any(sign in message for sign in SIGNS_OF_LOSS):
        return None
    if given_up():
        waited_for = " or ".join(each.endpoint for each in known())
        return f"Ctrl-C ended the wait for worker {waited_for}", LOSSES["busy"][1]
    suspects = [each for each in known() if message.endswith(f" {each.address}")] or known()
    faults = _probe(suspects)
    lost = {name: fault for name, fault in faults.items() if fault != "busy"}
    if not lost and len(faults) != 1:
        named = f": {' or '.join(faults)}" if faults else ""
        return f"a worker is lost{named}", LOSSES["busy"][1]
    (name, fault), *others = (lost or faults).items()
    what, hint = LOSSES[fault]
    if others:
        return f"workers {' and '.join(lost)} are lost", hint
    return f"worker {name} is lost: {what}", hint


def _probe(suspects: Sequence[Greeting]) -> dict[str, Fault | None]:
    """How each can be greeted now, by their endpoints. Once one is found to be lost the others get a moment only."""
    pool = ThreadPoolExecutor(max(len(suspects), 1))
    asked = {each.endpoint: pool.submit(_fault, each.address) for each in suspects}
    wait(asked.values(), return_when=FIRST_COMPLETED)
    wait(asked.values(), timeout=2 * DYING)
    pool.shutdown(wait=False)
    return {name: fault.result() if fault.done() else "busy" for name, fault in asked.items()}


def _fault(address: str) -> Fault | None:
    """How a worker can be greeted now. One that is just dying still accepts, and hangs up: it is asked once more."""
    fault: Fault | None = None
    for _ in range(2):
        try:
            greet(address, patience=PROBING)
        except GreetingError as error:
            fault = error.fault
        else:
            return None
        if fault != "closed":
            break
        time.sleep(DYING)
    return fault


def explain_refusal(reason: str, hint: str) -> tuple[str, str]:
    """`reason`, why llama.cpp refused to load or open something, and `hint`, in other words if a worker has no room."""
    named = next((each for each in known() if f"[{each.address}]" in reason), None)
    if named is None or "allocate" not in reason:
        return reason, hint
    size = re.search(r"buffer of size (\d+)", reason)
    wanted = f" for {int(size[1]) / 1e6:,.0f} MB more" if size else ""
    return f"worker {named.endpoint} has not enough memory{wanted}", LESS_THERE
