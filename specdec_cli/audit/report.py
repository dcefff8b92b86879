"""What an audit found, in words and as JSON."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from specdec_cli.audit.auditing import Audit
from specdec_cli.json_line import to_line
from specdec_cli.terminal import ONE_LINE

SCHEMA: Final = 1
WIDEST: Final = 8
"""Characters of a check's name."""


def to_words(audit: Audit, *, target: str, draft: str) -> str:
    """A line for each check, and the verdict last."""
    lines = [f"{'pair':<{WIDEST}}  {target}, drafted for by {draft}; seed {audit.seed}"]
    for each in audit.outcomes:
        lines.append(f"{each.name:<{WIDEST}}  {'passed' if each.passed else 'FAILED'}: {each.words}")
    lines.append(f"{'verdict':<{WIDEST}}  {_verdict(audit)}")
    return "".join(line.translate(ONE_LINE) + "\n" for line in lines)


def to_json(audit: Audit, *, target: str, draft: str) -> str:
    """All of it as one object on one line."""
    checks = [
        {"name": each.name, "passed": each.passed, "words": each.words, "figures": each.figures}
        for each in audit.outcomes
    ]
    report = {
        "schema": SCHEMA,
        "specdec": version("specdec-cli"),
        "passed": audit.passed and not audit.interrupted,
        "interrupted": audit.interrupted,
        "seed": audit.seed,
        "target": target,
        "draft": draft,
        "seconds": round(audit.seconds, 3),
        "checks": checks,
    }
    return to_line(report)


def _verdict(audit: Audit) -> str:
    failed = [each.name for each in audit.outcomes if not each.passed]
    if failed:
        return f"this pair does not say what its target says alone: {', '.join(failed)} failed"
    if audit.interrupted:
        return "interrupted; nothing wrong was found until then"
    return f"nothing wrong found in {audit.seconds:.0f} s"
