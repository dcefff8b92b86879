"""A summary of a trace: as text of 80 columns, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from specdec_cli.core.costs import Costs
from specdec_cli.core.verify import Kind
from specdec_cli.json_line import to_line
from specdec_cli.traces.summary import Engine, Summary
from specdec_cli.traces.wording import plain

VERSION: Final = 1
"""Of the JSON."""
BAR: Final = 20
NOTHING: Final = "n/a"


def to_text(summary: Summary) -> str:
    """All figures, the most telling first."""
    blocks = [_overview(summary), _acceptance(summary), _lengths(summary), _controller(summary), _costs(summary.costs)]
    return "\n\n".join("\n".join(block) for block in map(list, blocks) if block) + "\n"


def to_json(summary: Summary) -> str:
    """One object on one line; null where nothing was counted."""
    return to_line(to_object(summary))


def to_object(summary: Summary) -> dict[str, Any]:
    """What `to_json` writes."""
    counters, timing = summary.counters, summary.timing
    return {
        "version": VERSION,
        "answers": summary.answers,
        "finished": summary.finished,
        "pairs": [asdict(pair) | {"answers": count} for pair, count in summary.pairs.items()],
        "rounds": counters.rounds,
        "tokens": counters.tokens,
        "kinds": {kind.value: count for kind, count in _kinds(summary).items()},
        "drafted": counters.drafted,
        "examined": counters.examined,
        "alpha": counters.alpha,
        "expected_alpha": counters.expected_alpha,
        "acceptance_rate": counters.acceptance_rate,
        "tokens_per_round": counters.tokens_per_round,
        "positions": [
            asdict(position) | {"alpha": position.alpha, "expected_alpha": position.expected_alpha}
            for position in summary.positions
        ],
        "lengths": {str(length): summary.lengths[length] for length in sorted(summary.lengths)},
        "drafters": {name: {"drafted": each[0], "accepted": each[1]} for name, each in counters.by_source.items()},
        "controller": {name or "none": asdict(each) for name, each in summary.expected.items()},
        "seconds": {"draft": timing.draft, "verify": timing.verify, "sample": timing.sample},
        "costs": None if summary.costs is None else asdict(summary.costs),
    }


def _kinds(summary: Summary) -> dict[Kind, int]:
    counters = summary.counters
    return {
        Kind.ACCEPTED: counters.accepted,
        Kind.CORRECTION: counters.corrections,
        Kind.BONUS: counters.bonus,
    }


def _overview(summary: Summary) -> Iterator[str]:
    counters, timing = summary.counters, summary.timing
    for pair, count in summary.pairs.items():
        yield from _pair(pair, count if len(summary.pairs) > 1 else 0)
    unfinished = summary.answers - summary.finished
    cut = f" ({unfinished} not finished)" if unfinished else ""
    yield _line("answers", f"{summary.answers}{cut}, {counters.tokens} tokens in {counters.rounds} rounds")
    yield _line("tokens", f"{_number(counters.tokens_per_round)} a round")
    yield _line("", ", ".join(f"{_share(n, counters.tokens)} {kind}" for kind, n in _kinds(summary).items()))
    parts = {"draft": timing.draft, "verify": timing.verify, "sample": timing.sample}
    shares = ", ".join(f"{_share(seconds, timing.generation)} {name}" for name, seconds in parts.items())
    yield _line("time", f"{timing.generation:.2f} s of rounds: {shares}")


def _pair(pair: Engine, count: int) -> Iterator[str]:
    yield _line("target", plain(pair.target))
    several = "" if count == 0 else f": {count} answer{'' if count == 1 else 's'}"
    yield _line("draft", plain(f"{pair.draft or 'none'}, {pair.rule} rule{several}"))


def _acceptance(summary: Summary) -> Iterator[str]:
    counters = summary.counters
    if not counters.drafted:
        return
    expected = f"Σ min(p, q) {_number(counters.expected_alpha)}"
    yield f"α {_number(counters.alpha)} ({expected}): {counters.accepted} of {counters.examined} examined tokens kept"
    if len(counters.by_source) > 1:
        for source, (drafted, accepted) in counters.by_source.items():
            yield f"  {plain(source)}: {accepted} of {drafted} drafted kept"
    yield f"{'position':>8}  {'α':<{BAR + 6}} {'Σ min':>5}  {'examined':>8}  {'drafted':>7}"
    for place, each in enumerate(summary.positions, 1):
        alpha, overlap = _number(each.alpha), _number(each.expected_alpha)
        bar = _bar(each.alpha or 0)
        yield f"{place:>8}  {bar}  {alpha:>4} {overlap:>5}  {each.examined:>8}  {each.drafted:>7}"


def _lengths(summary: Summary) -> Iterator[str]:
    if not summary.counters.drafted:
        return
    most = max(summary.lengths.values())
    yield f"{'drafted':>8}  rounds"
    for length in sorted(summary.lengths):
        count = summary.lengths[length]
        share = _share(count, summary.counters.rounds)
        yield f"{length:>8}  {_bar(count / most)}  {count:>6}  {share:>5}"


def _controller(summary: Summary) -> Iterator[str]:
    for name, each in summary.expected.items():
        if name:
            expected, came = each.expected / each.rounds, each.emitted / each.rounds
            rounds = f"{each.rounds} round{'' if each.rounds == 1 else 's'}"
            yield f"auto expected {expected:.2f} tokens a round of {plain(name)}, and {came:.2f} came ({rounds})"


def _costs(costs: Costs | None) -> Iterator[str]:
    if costs is None:
        return
    yield f"a plain step took {1000 * costs.target[0]:.3g} ms when it was measured"
    passes = [1, 2, 3, 4, 6, 8, 12, 16]
    yield "  v(n)  " + "  ".join(f"{n}: {costs.verify(n):.2f}" for n in passes if n <= len(costs.target))
    for name, seconds in costs.drafts.items():
        yield f"  c     {seconds[0] / costs.target[0]:.3f} ({plain(name)})"


def _line(title: str, text: str) -> str:
    return f"{title:<8} {text}"


def _bar(share: float) -> str:
    filled = round(BAR * min(share, 1.0))
    return "━" * filled + "╌" * (BAR - filled)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else NOTHING
