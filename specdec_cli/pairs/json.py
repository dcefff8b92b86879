"""Pairs and what a check of one found, as JSON: sizes in bytes, null where something is not known."""

from __future__ import annotations

from typing import Any

from specdec_cli.pairs.check import Need, Report
from specdec_cli.pairs.entries import SETTINGS, Entry, ModelFile, label


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """One pair of `models list --json`; sizes in bytes, null where something is not known."""
    return {
        "name": entry.name,
        "default": entry.default,
        "own": entry.own,
        "target": _file_to_json(entry.target),
        "draft": None if entry.draft is None else _file_to_json(entry.draft),
        "drafters": list(entry.drafters),
        "draft_tokens": entry.draft_tokens,
        **{name: entry.settings.get(name) for name in SETTINGS},
        "tuned": dict(entry.tuned) or None,
        "size": entry.size,
        "here": all(each.here for each in entry.files),
        "fits": entry.fits,
        "notes": entry.notes or None,
        "models_toml": None if entry.table is None else str(entry.table),
    }


def report_to_json(report: Report) -> dict[str, Any]:
    """The object of `models check --json`; memory in bytes."""
    agreement = report.agreement
    return {
        "pair": report.pair.name,
        "runs": not report.obstacle,
        "verdict": report.obstacle or "can run",
        "hint": report.way_out or None,
        "notes": list(report.remarks),
        "target": _need_to_json(report.target),
        "draft": None if report.draft is None else _need_to_json(report.draft),
        "drafters": [label(each) for each in report.pair.drafters],
        "vocabulary": None
        if agreement is None
        else {
            "same": not agreement.difference,
            "shared": agreement.shared,
            "first_difference": agreement.difference or None,
        },
        "memory": report.memory,
        "machine_memory": report.machine,
    }


def _file_to_json(file: ModelFile) -> dict[str, Any]:
    return {
        "file": file.name,
        "repo": None if file.hub is None else file.hub.repo,
        "revision": None if file.hub is None else file.hub.revision,
        "sha256": None if file.hub is None else file.hub.sha256,
        "path": None if file.path is None else str(file.path),
        "here": file.here,
        "size": file.size,
        "licence": file.licence,
    }


def _need_to_json(need: Need) -> dict[str, Any]:
    about, shape = need.description, need.description.shape
    return {
        "path": str(about.path),
        "architecture": shape.architecture,
        "layers": shape.layers,
        "trained_context": shape.trained_context,
        "context": need.context,
        "tokenizer": about.vocabulary.model,
        "tokens": len(about.vocabulary.tokens),
        "special_tokens": dict(about.special),
        "adds_beginning": about.vocabulary.add_bos,
        "chat_template": about.has_template,
        "rollback": shape.rollback,
        "weights": about.weights,
        "cache": need.cache,
        "states": need.states,
    }
