"""An examination line by line for people, what to put right last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from specdec_cli.core.costs import Costs
from specdec_cli.doctor.engine import Engine
from specdec_cli.doctor.examination import Checked, Examination
from specdec_cli.doctor.findings import Finding
from specdec_cli.doctor.hardware import FEATURES, Hardware
from specdec_cli.doctor.places import KeptCosts, Pairs, Place
from specdec_cli.doctor.software import Software
from specdec_cli.doctor.workers import Worker
from specdec_cli.llama.devices import Device
from specdec_cli.pairs.check import gigabytes
from specdec_cli.pairs.words import to_report
from specdec_cli.placing import in_words
from specdec_cli.terminal import ONE_LINE

MOST_COSTS: Final = 6
"""Measurements that are shown; `--json` has them all."""
SHOWN_PASSES: Final = (4, 8)
NOT_INSTALLED: Final = "not installed"


def to_text(found: Examination, findings: Sequence[Finding]) -> str:
    """The report."""
    blocks = [
        [*_software(found.software)],
        [*_engine(found.engine), *_devices(found.devices, found.workers), *_hardware(found.hardware)],
        [*map(_place, found.places), *_pairs(found.pairs), *_costs(found.kept)],
    ]
    text = "\n".join("".join(f"{line.translate(ONE_LINE).rstrip()}\n" for line in block) for block in blocks)
    return f"{text}\n{_checked(found.checked)}\n{_findings(findings)}"


def _line(title: str, text: str) -> str:
    return f"{title:<9} {text}"


def _software(software: Software) -> Iterator[str]:
    yield _line("specdec", f"{software.specdec or NOT_INSTALLED}, {software.python}, {software.system}")
    yield _line("packages", _versions(software.packages))
    for index, (extra, packages) in enumerate(software.extras.items()):
        yield _line("" if index else "extras", f"{extra}: {_versions(packages)}")


def _versions(packages: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {installed or NOT_INSTALLED}" for name, installed in packages.items())


def _engine(engine: Engine) -> Iterator[str]:
    if engine.build is None:
        yield _line("llama.cpp", "does not load; why stands below")
        return
    build = engine.build
    commit = f", commit {build.commit}" if build.commit else ""
    yield _line("llama.cpp", f"ggml {build.ggml or '?'}{commit}; backends {', '.join(build.backends)}")
    for backend, flags in build.features.items():
        yield _line("build", f"{backend}: {' '.join(flags)}")


def _devices(devices: Sequence[Device], workers: Sequence[Worker]) -> Iterator[str]:
    for index, device in enumerate(devices):
        yield _line("" if index else "devices", _device(device))
    for index, worker in enumerate(workers):
        yield _line("" if index else "workers", f"{worker.endpoint}: {_worker(worker)}")


def _worker(worker: Worker) -> str:
    if worker.greeting is None:
        return "cannot be used; why stands below"
    unusable = "; cannot be used, why stands below" if worker.problem else ""
    return f"protocol {worker.version}, round trip {_milliseconds(worker.greeting.round_trip)}{unusable}"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.01 else f"{1000 * seconds:.2f} ms"


def _device(device: Device) -> str:
    if device.kind == "CPU":  # of which all memory is told to be free
        return f"{device.name}: {device.description}, {gigabytes(device.total)}"
    memory = f"{gigabytes(device.free)} of {gigabytes(device.total)} free"
    if device.endpoint is not None:
        return f"{device.name}: of worker {device.endpoint}, {memory}"
    return f"{device.name}: {device.description}, {device.kind} by {device.backend}, {memory}"


def _hardware(hardware: Hardware) -> Iterator[str]:
    quota = "" if hardware.quota is None else f", the time of {hardware.quota:g} (control group)"
    yield _line("cpu", f"{hardware.cpu}; {hardware.usable} of {hardware.cores or '?'} CPUs usable{quota}")
    if hardware.features is not None:
        yield _line("", " ".join(flag for flag in FEATURES if flag in hardware.features))
    if hardware.card:
        yield _line("card", hardware.card)
    sizes = {"in all": hardware.memory, "free now": hardware.available}
    known = [f"{gigabytes(size)} {what}" for what, size in sizes.items() if size is not None]
    yield _line("memory", ", ".join(known) or "?")


def _place(place: Place) -> str:
    state = [_size(place.size) if place.exists else "not there yet", *([] if place.writable else ["not writable"])]
    return _line(place.title, f"{place.path} ({', '.join(state)})")


def _size(count: int) -> str:
    return gigabytes(count) if count >= 999.5e3 else f"{-(-count // 1000)} kB"


def _pairs(pairs: Pairs) -> Iterator[str]:
    if pairs.problem is not None:
        yield _line("pairs", pairs.problem.message)
    else:
        yield _line("pairs", f"{pairs.known}, {pairs.own} of them your own; the default is {pairs.default}")


def _costs(kept: KeptCosts) -> Iterator[str]:
    if kept.problem:
        yield _line("costs", f"{kept.path} {kept.problem}")
    if not kept.costs:
        yield from [] if kept.problem else [_line("costs", "nothing was measured yet")]
        return
    yield _line("costs", f"measured for {len(kept.costs)} pair{'' if len(kept.costs) == 1 else 's'}")
    yield from (_line("", _cost(costs)) for costs in kept.costs[-MOST_COSTS:])
    if len(kept.costs) > MOST_COSTS:
        yield _line("", f"and {len(kept.costs) - MOST_COSTS} older ones")


def _cost(costs: Costs) -> str:
    single = costs.target[0]
    passes = [f"v({n}) {costs.target[n - 1] / single:.2f}" for n in SHOWN_PASSES if n <= len(costs.target)]
    drafts = [f"c of {name} {seconds[0] / single:.2f}" for name, seconds in costs.drafts.items()]
    return ", ".join([f"{1000 * single:.1f} ms a token", *passes, *drafts])


def _checked(checked: Checked) -> str:
    report, problem = checked.report, checked.problem
    if report is not None:
        title = report.pair.name or "of files"
    else:
        title = "not looked at: llama.cpp does not load" if problem is None else problem.message
    lines = [_line("pair", title), *_plan(checked)]
    pair, *plan = (f"{line.translate(ONE_LINE)}\n" for line in lines)
    return "".join([pair, "" if report is None else to_report(report), *plan])


def _plan(checked: Checked) -> Iterator[str]:
    """Where the layers go, if they do not all go to the CPU."""
    plan, report = checked.plan, checked.report
    if plan is None or report is None or not (plan.target.used or plan.draft.used):
        return
    yield _line("layers", f"target: {in_words(plan.target)}")
    if report.draft is not None:
        yield _line("", f"draft: {in_words(plan.draft)}")


def _findings(findings: Sequence[Finding]) -> str:
    if not findings:
        return "Nothing to fix.\n"
    lines = ["To fix, the first one first:"]
    for number, finding in enumerate(findings, 1):
        lines += [f"{number}. {finding.message}"] + ([f"   {finding.way_out}"] if finding.way_out else [])
    return "".join(line.translate(ONE_LINE) + "\n" for line in lines)
