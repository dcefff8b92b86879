"""What llama.cpp says of itself, asked in a process of its own first: a build that does not fit may end the process."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

from specdec_cli.errors import ModelError
from specdec_cli.llama.devices import Device, devices
from specdec_cli.llama.library import Build, build

ATTEMPT: Final = "from specdec_cli.llama.devices import devices; from specdec_cli.llama.library import build; "
PATIENCE: Final = 120.0
"""Seconds for loading: graphics drivers take some."""
REBUILD: Final = "install it again for this machine: pip install --force-reinstall --no-cache-dir llama-cpp-python"


@dataclass(frozen=True, slots=True)
class Engine:
    """llama.cpp as it loads here; without a `build` there is a `problem`, with the way out in `hint`."""

    build: Build | None
    devices: tuple[Device, ...] = ()
    problem: str = ""
    hint: str = ""


def read_engine(attempt: str = f"{ATTEMPT}build(); devices()") -> Engine:
    """Load llama.cpp, unless the process that runs `attempt` does not survive that."""
    if ending := _ending(attempt):
        return Engine(None, problem=f"llama.cpp does not load: {ending}", hint=REBUILD)
    try:
        return Engine(build(), tuple(devices()))
    except ModelError as error:
        return Engine(None, problem=error.message, hint=error.hint)


def _ending(attempt: str) -> str:
    """How a process that runs `attempt` died, in words; empty if it did not. What it says of errors is said again."""
    try:
        done = subprocess.run([sys.executable, "-P", "-c", attempt], capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not end within {PATIENCE:g} seconds"
    except OSError:  # no such process can be started here
        return ""
    if done.returncode in (0, 1):  # 1: an exception of Python
        return ""
    try:
        return f"it ends the process by {signal.Signals(-done.returncode).name}"
    except ValueError:  # Windows has codes for what signals are elsewhere
        return f"it ends the process with code {done.returncode:#x}"
