"""What a figure is worth nothing without: the machine, the versions, the models and the memory that they took."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from specdec_cli.errors import ModelError
from specdec_cli.llama.devices import usable_cpus
from specdec_cli.llama.weights import Weights
from specdec_cli.pairs.check import CheckOptions, check_pair
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from specdec_cli.telling import name_draft, name_weights

CPU_INFO: Final = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured: the processor, how many of them a program may use, system and versions."""

    cpu: str
    cores: int
    system: str
    python: str
    llama_cpp_python: str
    specdec: str


@dataclass(frozen=True, slots=True)
class Model:
    """A loaded model: its file, what llama.cpp calls it, the bytes of its weights, and where it runs."""

    path: str
    description: str
    bytes: int
    backend: str


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: the most that this process ever held (None where the system does not say), and of weights and caches."""

    peak: int | None
    weights: int
    caches: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All of these, the pair in words, and how it was loaded."""

    machine: Machine
    pair: str | None
    target: Model
    draft: Model | None
    target_name: str
    draft_name: str
    memory: Memory
    settings: ModelSettings


def find_facts(session: Session) -> Facts:
    """About `session`, once it has answered."""
    models = [each for each in (session.target, session.draft) if each is not None]
    return Facts(
        find_machine(),
        session.pair.name,
        _to_model(session.target),
        _to_model(session.draft) if session.draft is not None else None,
        name_weights(session.target),
        name_draft(session),
        Memory(_peak(), sum(each.bytes for each in models), _caches(session)),
        session.settings,
    )


def find_machine() -> Machine:
    """The machine that this runs on."""
    return Machine(
        _cpu(),
        usable_cpus(),
        f"{platform.system()} {platform.release()} {platform.machine()}",
        platform.python_version(),
        version("llama-cpp-python"),
        version("specdec-cli"),
    )


def _to_model(weights: Weights) -> Model:
    return Model(str(weights.path), weights.description, weights.bytes, weights.backend)


def _cpu() -> str:
    """What the processor calls itself."""
    try:
        lines = CPU_INFO.read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, named), platform.processor() or platform.machine())


def _peak() -> int | None:
    if sys.platform == "win32":
        return None
    import resource  # there is none on Windows

    most = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return most if sys.platform == "darwin" else most * 1024


def _caches(session: Session) -> int | None:
    """Bytes of the caches of both models, as `specdec models check` works them out."""
    settings = session.settings
    try:
        report = check_pair(session.pair, CheckOptions(settings.ctx_size, settings.cache_type_k, settings.cache_type_v))
    except ModelError:
        return None
    needs = [each for each in (report.target, report.draft) if each is not None]
    return sum(each.cache + each.states for each in needs)
