"""An examination as JSON: sizes in bytes, seconds, null where something is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from specdec_cli.doctor.examination import Checked, Examination
from specdec_cli.doctor.findings import Finding
from specdec_cli.doctor.hardware import FEATURES, Hardware
from specdec_cli.doctor.places import Place
from specdec_cli.doctor.workers import Worker
from specdec_cli.llama.devices import Device
from specdec_cli.llama.placement import Placement
from specdec_cli.pairs.json import report_to_json


def to_json(found: Examination, findings: Sequence[Finding]) -> dict[str, Any]:
    """The object of `doctor --json`."""
    software, engine, pairs, kept = found.software, found.engine, found.pairs, found.kept
    return {
        "specdec": software.specdec,
        "python": software.python,
        "system": software.system,
        "packages": dict(software.packages),
        "extras": {extra: dict(packages) for extra, packages in software.extras.items()},
        "llama_cpp": None if engine.build is None else asdict(engine.build),
        "devices": [_device(device) for device in found.devices],
        "workers": [_worker(worker) for worker in found.workers],
        "machine": _machine(found.hardware),
        "places": {place.title: _place(place) for place in found.places},
        "pairs": {"known": pairs.known, "own": pairs.own, "default": pairs.default} if pairs.problem is None else None,
        "costs": {
            "path": str(kept.path),
            "problem": kept.problem or None,
            "kept": [asdict(each) for each in kept.costs],
        },
        "pair": _checked(found.checked),
        "placing": _plan(found.checked),
        "to_fix": [
            {"message": each.message, "way_out": each.way_out or None, "exit_code": each.exit_code} for each in findings
        ],
    }


def _device(device: Device) -> dict[str, Any]:
    known = asdict(device)
    del known["pointer"]
    return known


def _worker(worker: Worker) -> dict[str, Any]:
    greeting, problem = worker.greeting, worker.problem
    return {
        "endpoint": worker.endpoint,
        "protocol": worker.version or None,
        "round_trip": None if greeting is None else greeting.round_trip,
        "devices": [device.name for device in worker.devices],
        "problem": None if problem is None else problem.message,
    }


def _machine(hardware: Hardware) -> dict[str, Any]:
    features = hardware.features
    return asdict(hardware) | {
        "features": None if features is None else [flag for flag in FEATURES if flag in features],
        "card": hardware.card or None,
    }


def _place(place: Place) -> dict[str, Any]:
    return {"path": str(place.path), "exists": place.exists, "writable": place.writable, "size": place.size}


def _checked(checked: Checked) -> dict[str, Any] | None:
    return None if checked.report is None else report_to_json(checked.report)


def _plan(checked: Checked) -> dict[str, Any] | None:
    plan, report = checked.plan, checked.report
    if plan is None or report is None:
        return None
    return {"target": _placement(plan.target), "draft": None if report.draft is None else _placement(plan.draft)}


def _placement(placement: Placement) -> dict[str, int]:
    """How many layers, the output being one of them, each device holds; all others are on the CPU."""
    return {device.name: count for device, count in placement.held}
