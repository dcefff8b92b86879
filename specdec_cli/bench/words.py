"""What a report says below its table: costs, memory, machine, what is missing, and the verdict."""

from __future__ import annotations

from typing import Final

from specdec_cli.bench.report import Report
from specdec_cli.bench.table import LEGEND, MORE, is_wide
from specdec_cli.bench.verdict import to_verdict
from specdec_cli.core.costs import Costs
from specdec_cli.pairs.check import gigabytes
from specdec_cli.terminal import ONE_LINE, fold

SHOWN: Final = (2, 3, 4, 5, 6, 8, 9, 12, 16)
"""v(n) of these n is told."""
INDENT: Final = 9
UNSTEADY: Final = 1.25
"""Plain answers whose speeds differ by so much are those of a busy machine: the text makes no such difference."""


def to_words(report: Report, width: int | None) -> str:
    """Line by line, the verdict last; folded to `width` columns if that is given."""
    facts, plan = report.facts, report.plan
    machine, memory = facts.machine, facts.memory
    peak = "" if memory.peak is None else f"{gigabytes(memory.peak)} at most; "
    caches = "" if memory.caches is None else f", caches {gigabytes(memory.caches)}"
    lines = {
        "costs": _costs(report.costs),
        "memory": f"{peak}weights {gigabytes(memory.weights)}{caches}",
        "pair": f"target {facts.target_name}, draft {facts.draft_name}",
        "machine": f"{machine.cpu}, {machine.cores} core{'s' if machine.cores > 1 else ''} usable, {machine.system}, "
        f"llama-cpp-python {machine.llama_cpp_python}",
        "answers": f"up to {plan.max_tokens} tokens, rule {plan.rule}, seeds from {plan.seed}, {_threads(report)}",
    }
    if missing := _missing(report):
        lines["missing"] = missing
    if noise := _noise(report):
        lines["noise"] = noise
    lines["verdict"] = to_verdict(report)
    legend = (*LEGEND, MORE) if is_wide(report, width) else LEGEND
    told = [f"{name:<{INDENT}}{text}".translate(ONE_LINE) for name, text in lines.items()]
    return "".join(f"{fold(each, width, INDENT)}\n" for each in (*legend, "", *told))


def _threads(report: Report) -> str:
    ours, theirs = report.facts.settings.threads, report.facts.settings.draft_threads
    draft = f" and {theirs} for the draft" if theirs != ours and report.facts.draft else ""
    return f"{ours} thread{'s' if ours != 1 else ''}{draft}"


def _costs(costs: Costs) -> str:
    steps = [f"c {costs.draft(name, 1, 1):.2f} ({name})" for name in costs.drafts] or ["c 0"]
    checks = [f"v({count}) {costs.verify(count):.2f}" for count in SHOWN]
    return f"{', '.join(steps)}; {', '.join(checks)}"


def _missing(report: Report) -> str:
    """What was planned and is not there, and why."""
    measurement = report.measurement
    if measurement.stopped is None:
        return ""
    reasons = {
        "time limit": f"after the {report.plan.time_limit:g} s of --time-limit (0: none)",
        "interrupted": "interrupted",
        "error": "it could not go on",
    }
    left = measurement.planned - len(measurement.samples)
    return f"{left} of {measurement.planned} answers: {reasons[measurement.stopped]}"


def _noise(report: Report) -> str:
    """How unsteady the machine was, if it was."""
    samples = [each for each in report.measurement.samples if each.job.draft_tokens == 0 and each.run.tokens]
    speeds = [each.run.speed for each in samples]
    if not speeds or max(speeds) < UNSTEADY * min(speeds):
        return ""
    return (
        f"plain answers ran at {min(speeds):.1f} to {max(speeds):.1f} tok/s: something else kept this machine busy, "
        "and figures differ by that much for no other reason"
    )
