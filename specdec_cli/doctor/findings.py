"""What should be put right, the most important first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from specdec_cli.doctor.engine import REBUILD
from specdec_cli.doctor.examination import Examination
from specdec_cli.doctor.hardware import FEATURES
from specdec_cli.doctor.workers import BACKEND, SLOW
from specdec_cli.errors import EXIT_MODEL, EXIT_OK, EXIT_USAGE
from specdec_cli.llama.devices import GPU_KINDS, Device
from specdec_cli.llama.rpc_library import NOT_BUILT
from specdec_cli.pairs.check import gigabytes

FAST: Final = ("AVX", "AVX2", "FMA", "F16C", "DOTPROD", "MATMUL_INT8")
"""Instructions without which llama.cpp is several times slower on a CPU that has them."""
BUILD_FLAGS: Final = {"NVIDIA": "-DGGML_CUDA=on", "AMD": "-DGGML_HIP=on", "Apple": "-DGGML_METAL=on"}
FAR_AWAY: Final = (
    "no fault: more is drafted in a round where a pass costs more, by itself; a nearer one would be faster"
)
RPC_FLAGS: Final = f'CMAKE_ARGS="-DGGML_RPC=ON", then {REBUILD}'
LOSES: Final = {
    "models": "specdec models pull cannot fetch anything",
    "config": "specdec models add and tune cannot keep anything",
    "cache": "each run measures anew how fast this machine is, so a seed may not repeat it",
    "state": "the chat forgets what was typed",
}
"""What does not work where a place cannot be written."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong and the way out. `exit_code` is OK where everything works, only not as well as it could."""

    message: str
    way_out: str
    exit_code: int


def find_faults(found: Examination) -> list[Finding]:
    """What to put right, in the order to do it: what cannot run, what is broken, what could be better."""
    findings = [
        *_of_engine(found),
        *_of_workers(found),
        *_of_pair(found),
        *_of_configuration(found),
        *_of_speed(found),
    ]
    once = {finding.message: finding for finding in findings}
    return sorted(once.values(), key=lambda finding: -finding.exit_code)


def _of_engine(found: Examination) -> Iterator[Finding]:
    engine, has = found.engine, found.hardware.features
    if engine.build is None:
        yield Finding(engine.problem, engine.hint, EXIT_MODEL)
    elif has is not None:
        lacking = [flag for flag in FEATURES if flag in _flags(found) and flag not in has]
        if lacking:
            message = f"llama.cpp is built for {', '.join(lacking)}, which this CPU does not have: it may crash"
            yield Finding(message, REBUILD, EXIT_MODEL)
    if missing := [name for name in found.software.missing if name != "llama-cpp-python"]:
        yield Finding(f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}", EXIT_USAGE)


def _of_workers(found: Examination) -> Iterator[Finding]:
    build = found.engine.build
    if found.workers and build is not None and BACKEND not in build.backends:
        yield Finding(NOT_BUILT, RPC_FLAGS, EXIT_MODEL)
    for worker in found.workers:
        if worker.problem is not None:
            yield Finding(worker.problem.message, worker.problem.hint, worker.problem.exit_code)
        elif worker.greeting is not None and worker.greeting.round_trip >= SLOW:
            milliseconds = f"{1000 * worker.greeting.round_trip:.0f} ms"
            message = f"worker {worker.endpoint} is {milliseconds} away, which each pass of the target waits for"
            yield Finding(message, FAR_AWAY, EXIT_OK)


def _of_pair(found: Examination) -> Iterator[Finding]:
    problem, report = found.checked.problem, found.checked.report
    if problem is not None:
        yield Finding(problem.message, problem.hint, problem.exit_code)
    if report is None:
        return
    available = found.hardware.available
    if report.obstacle:
        yield Finding(f"the pair cannot run: {report.obstacle}", report.way_out, EXIT_MODEL)
    elif available is not None and not _has_gpu(found.devices) and report.memory > available:
        message = f"the pair needs {gigabytes(report.memory)} of memory and {gigabytes(available)} are free now"
        yield Finding(message, "close what else needs memory, or take smaller files", EXIT_OK)


def _of_configuration(found: Examination) -> Iterator[Finding]:
    if (problem := found.pairs.problem) is not None:
        yield Finding(problem.message, problem.hint or "correct that line", EXIT_USAGE)
    for place in found.places:
        if not place.writable:
            message = f"{place.path} cannot be written: {LOSES[place.title]}"
            yield Finding(message, "change its owner or permissions, or the XDG variable that names it", EXIT_USAGE)
    if found.kept.problem:
        message = f"{found.kept.path} {found.kept.problem}"
        yield Finding(message, "delete it: what it kept is measured anew, in seconds", EXIT_USAGE)


def _of_speed(found: Examination) -> Iterator[Finding]:
    hardware = found.hardware
    if found.engine.build is None:
        return
    if hardware.features is not None:
        unused = [flag for flag in FAST if flag in hardware.features and flag not in _flags(found)]
        if unused:
            message = f"this CPU has {', '.join(unused)}, and llama.cpp is built without: it is slower than it could be"
            yield Finding(message, REBUILD, EXIT_OK)
    if hardware.card and not _has_gpu(found.engine.devices):
        message = f"there is a graphics card ({hardware.card}) that this build of llama.cpp cannot use"
        yield Finding(message, f'CMAKE_ARGS="{BUILD_FLAGS[hardware.card]}", then {REBUILD}', EXIT_OK)
    if hardware.quota is not None and hardware.quota < hardware.usable:
        threads = max(1, int(hardware.quota))
        message = f"this process gets the time of {hardware.quota:g} CPUs and would run {hardware.usable} threads"
        yield Finding(message, f"--threads {threads}, or raise the limit of the container", EXIT_OK)


def _flags(found: Examination) -> frozenset[str]:
    """The flags that are on in any backend."""
    build = found.engine.build
    return frozenset() if build is None else frozenset(flag for flags in build.features.values() for flag in flags)


def _has_gpu(devices: Sequence[Device]) -> bool:
    return any(device.kind in GPU_KINDS for device in devices)
