"""What a worker says to its user, and how the check of a big cache shows that it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from specdec_cli.downloads.meter import Progress
from specdec_cli.render import to_progress
from specdec_cli.status import StatusLine
from specdec_cli.terminal import Terminal
from specdec_cli.worker.messages import Ready
from specdec_cli.worker.plan import Plan
from specdec_cli.worker.tensor_cache import Checked

CAME: Final = "a client is connected"
AGAIN: Final = "serving again"
MINUTE, HOUR = 60, 3600


def serving(plan: Plan, ready: Ready, version: str | None, cache: Path | None) -> Iterator[str]:
    """What is served, and where: a line for the whole and one for each device. `version` is the protocol's."""
    threads = "1 thread" if ready.threads == 1 else f"{ready.threads} threads"
    parts = [f"serving at {plan.address}", f"protocol {version}" if version else "", threads]
    yield ", ".join([*filter(None, parts), f"cache {cache}" if cache else "no cache"])
    for device in ready.devices:
        yield f"  {device}"


def left(seconds: float) -> str:
    """A client that stayed for `seconds` has left."""
    return f"the client has left after {_duration(round(seconds))}"


def died(reason: str) -> str:
    """The process that serves died, and another one is on its way."""
    return f"the serving process died: {reason}; starting it again"


def checked(found: Checked) -> str:
    """What became of the tensors that were looked into."""
    kept = f"{_tensors(found.kept)} of {found.bytes / 1e9:.2f} GB checked and kept in the cache"
    deleted = f"{_tensors(found.deleted)} deleted from the cache, not whole: a full disk, or a worker that was killed"
    return "; ".join([*([kept] if found.kept else []), *([deleted] if found.deleted else [])])


def with_progress(check: Callable[[Progress], Checked], terminal: Terminal) -> Checked:
    """Do `check`, which may read gigabytes, with its progress on the terminal."""
    status = StatusLine(terminal)
    try:
        return check(lambda task, share: status.show_loading(to_progress(task, share)))
    finally:
        status.close()


def _tensors(count: int) -> str:
    return "1 tensor" if count == 1 else f"{count} tensors"


def _duration(seconds: int) -> str:
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min {seconds % MINUTE} s"
    return f"{seconds // HOUR} h {seconds % HOUR // MINUTE} min"
