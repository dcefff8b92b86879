"""What the page says of an answer as a whole: its name, its figures, and the models and settings behind it."""

from __future__ import annotations

import json
from typing import Any, Final

from specdec_cli.traces.summary import summarise
from specdec_cli.traces.trace import Header, Trace, TracedAnswer

LONGEST_NAME: Final = 80
"""Characters."""
MISSING: Final = "n/a"
LANES: Final = "draft, verify, sampling"
ENDINGS: Final = {
    "stop": "by itself",
    "length": "as many as were asked for",
    "context": "the context was full",
    "interrupted": "interrupted",
    "failed": "the engine failed",
}


def to_title(trace: Trace) -> str:
    """The title of a page, without what UTF-8 cannot hold."""
    return f"specdec trace: {_cut(trace.answers[0].header.target)}".encode("utf-8", "replace").decode("utf-8")


def to_name(number: int, answer: TracedAnswer) -> str:
    """What to choose answer `number` by: what bench calls it, or its beginning."""
    if label := answer.header.label:
        said = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in label.items())
    else:
        said = "".join(emitted.token.text for each in answer.rounds[:20] for emitted in each.emitted)
    return f"{number}: {_cut(' '.join(said.split()))}"


def to_figures(answer: TracedAnswer) -> list[list[str]]:
    """Name, value and a note of each figure, the most telling first."""
    summary = summarise(answer.rounds)
    counts, timing = summary.counters, summary.timing
    seconds, whole = (timing.draft, timing.verify, timing.sample), timing.generation
    reason = answer.end.finish_reason if answer.end else None
    return [
        ["Tokens", f"{counts.tokens:,}", ENDINGS.get(reason, reason) if reason else "the trace ends before the answer"],
        ["Tokens a round", _over(counts.tokens, counts.rounds), f"{counts.rounds:,} rounds"],
        ["α", _over(counts.accepted, counts.examined), f"Σ min(p, q) {_over(counts.overlap, counts.examined)}"],
        ["Accepted", _percent(counts.accepted, counts.drafted), f"{counts.accepted:,} of {counts.drafted:,} drafted"],
        ["Tokens/s", _over(counts.tokens, whole, 1), "after the prompt"],
        ["Time", "/".join(_percent(part, whole).removesuffix(" %") for part in seconds) + " %", LANES],
    ]


def to_facts(answer: TracedAnswer) -> list[list[str]]:
    """Name and value of all that was set."""
    header = answer.header
    facts: list[tuple[str, Any]] = [
        ("target", header.target),
        ("draft", header.draft or "none"),
        ("rule", header.rule),
        ("seed", header.seed),
        ("draft tokens", header.draft_tokens),
        ("draft temperature", header.draft_temperature),
        ("prompt tokens", header.prompt_tokens),
        ("vocabulary", header.vocabulary),
        *((name.replace("_", " "), value) for name, value in header.sampling.items()),
        *_costs(header),
        ("specdec", header.specdec),
    ]
    return [[name, _plain(value)] for name, value in facts]


def _costs(header: Header) -> list[tuple[str, str]]:
    """A pass of the target and a step of each draft, if they were known."""
    costs = header.costs
    if costs is None:
        return []
    passes = ", ".join(f"{1000 * seconds:.3g}" for seconds in costs.target)
    return [("ms of a target's pass over 1, 2, … tokens", passes)]


def _over(part: float, whole: float, digits: int = 2) -> str:
    return f"{part / whole:.{digits}f}" if whole else MISSING


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else MISSING


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"
