"""A report for programs: one JSON object, or a CSV row for each cell. `docs/bench.md` says what their names mean."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from specdec_cli.bench.report import Report, Row
from specdec_cli.bench.verdict import to_verdict
from specdec_cli.core.costs import Costs
from specdec_cli.json_line import to_line
from specdec_cli.placing_keys import to_flat

SCHEMA: Final = 1
KIND: Final = "bench"
"""What `type` says in the object."""
DIGITS: Final = 6


def to_json(report: Report) -> str:
    """The object of --json, on one line."""
    facts, plan, measurement = report.facts, report.plan, report.measurement
    result = {
        "type": KIND,
        "schema": SCHEMA,
        "pair": facts.pair,
        "target": asdict(facts.target),
        "draft": None if facts.draft is None else asdict(facts.draft),
        "drafters": facts.draft_name,
        "machine": asdict(facts.machine),
        "memory": asdict(facts.memory),
        "settings": to_flat(facts.settings)
        | {
            "draft_tokens": [0, *plan.draft_tokens],
            "temperatures": list(plan.temperatures),
            "rule": plan.rule,
            "repeat": plan.repeat,
            "max_tokens": plan.max_tokens,
            "seed": plan.seed,
            "time_limit": plan.time_limit,
            "raw": plan.raw,
        },
        "costs": costs_to_json(report.costs),
        "answers": {
            "planned": measurement.planned,
            "done": len(measurement.samples),
            "stopped": measurement.stopped,
            "error": measurement.error.message if measurement.error else None,
        },
        "cells": [_cell(row) for row in report.rows],
        "verdict": to_verdict(report),
    }
    return to_line(_rounded(result))


def costs_to_json(costs: Costs) -> dict[str, Any]:
    """Seconds of passes over 1, 2, … tokens; v and c are made of these."""
    return {
        "target": list(costs.target),
        "drafts": {name: list(seconds) for name, seconds in costs.drafts.items()},
        "v": [costs.verify(count) for count in range(1, len(costs.target) + 1)],
        "c": {name: costs.draft(name, 1, 1) for name in costs.drafts},
    }


def to_csv(report: Report) -> str:
    """A line of names, and one for each cell; nothing where a number is missing."""
    rows = [_flat(_cell(row)) for row in report.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _cell(row: Row) -> dict[str, Any]:
    cell, counters, timing = row.cell, row.counters, row.timing
    whole = timing.generation
    return {
        "prompts": cell.kind,
        "temperature": cell.temperature,
        "draft_tokens": cell.draft_tokens,
        "answers": len(cell.samples),
        "tokens": counters.tokens,
        "rounds": counters.rounds,
        "tokens_per_second": asdict(cell.speed),
        "speed_up": None if row.is_plain or cell.speed_up is None else asdict(cell.speed_up),
        "predicted": row.predicted,
        "classic": row.classic,
        "drafted": counters.drafted,
        "accepted": counters.accepted,
        "examined": counters.examined,
        "alpha": counters.alpha,
        "expected_alpha": counters.expected_alpha,
        "acceptance_rate": counters.acceptance_rate,
        "tokens_per_round": counters.tokens_per_round,
        "drafted_per_round": counters.drafted_per_round,
        "c": row.step,
        "v": row.check,
        "round_cost": row.cost,
        "shares": {"draft": timing.draft / whole, "verify": timing.verify / whole, "sample": timing.sample / whole},
        "accepted_at": list(row.kept),
        "examined_at": list(row.examined),
    }


def _flat(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Objects in it as names with an underscore, lists left out."""
    flat: dict[str, Any] = {}
    for name, value in cell.items():
        if name == "speed_up":
            value = value or dict.fromkeys(("median", "low", "high"))
        if isinstance(value, dict):
            flat |= {f"{name}_{part}": _rounded(each) for part, each in value.items()}
        elif not isinstance(value, list):
            flat[name] = _rounded(value)
    return flat


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return value
