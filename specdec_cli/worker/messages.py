"""What the process that serves tells the one that looks after it: lines among those that ggml prints."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Final

MARK: Final = "specdec: "


@dataclass(frozen=True, slots=True)
class Ready:
    """Clients can come. `devices` are described in words."""

    devices: tuple[str, ...]
    threads: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing can be served, for a reason that the user can do something about; see `SpecdecError`."""

    message: str
    hint: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """llama.cpp gave up on a failed assertion; the process ends with this."""

    message: str


Message = Ready | Refused | Stopped


def tell(message: Message) -> None:
    """Write `message` to standard output at once and in one piece: C prints there too, from another thread."""
    line = json.dumps({type(message).__name__: asdict(message)})
    os.write(1, f"{MARK}{line}\n".encode())


def to_message(line: str) -> Message | None:
    """The message in a `line` of the output; None if that is ggml's."""
    if not line.startswith(MARK):
        return None
    ((name, values),) = json.loads(line.removeprefix(MARK)).items()
    if name == Ready.__name__:
        return Ready(tuple(values["devices"]), values["threads"])
    return Refused(**values) if name == Refused.__name__ else Stopped(**values)
