"""Statistics as people read them and as JSON: pure functions of a generation's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.text import Text

from specdec_cli.core.logprobs import Logprob, TokenLogprobs
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.limits import DraftTokens
from specdec_cli.terminal import ONE_LINE

MISSING: Final = "n/a"
ENDINGS: Final = {
    "length": ", as many as were asked for",
    "context": ", then the context was full",
    "interrupted": ", interrupted",
}
"""What the summary says about an answer that did not end by itself."""
BAR_CELLS: Final = 24


def to_progress(task: str, share: float | None) -> str:
    """What takes a while, with a bar if it is known that `share`, 0..1, of it is done."""
    if share is None:
        return task
    return f"{task} {_bar(share)} {share:4.0%}"


def to_status(counters: Counters, timing: Timing, draft_tokens: DraftTokens) -> list[str]:
    """Parts of a line about an answer in the making, the most telling first."""
    speed = f"{_number(timing.rate(counters.tokens), 1)} tok/s"
    if not draft_tokens:
        return [speed, f"{counters.tokens} tokens"]
    shares = "/".join(_percent(part, timing.generation) for part in (timing.draft, timing.verify, timing.sample))
    return [
        f"α {_number(counters.alpha)}",
        f"{_number(counters.tokens_per_round, 1)} tok/round",
        f"γ {draft_tokens if draft_tokens != 'auto' else _number(counters.drafted_per_round, 1)}",
        speed,
        f"draft/verify/sample {shares} %",
    ]


def to_summary(
    counters: Counters,
    timing: Timing,
    *,
    reason: str | None,
    seed: int,
    target: str,
    draft: str | None,
    brought: Mapping[str, Any],
) -> Text:
    """One line about an answer that ended for `reason`; `target` and `draft` say what was loaded where.

    `brought` are the sampling options that the target's file set.
    """
    parts = _amount(counters, timing, reason)
    if draft is not None:
        parts += [
            _accepted(counters),
            f"α {_number(counters.alpha)} (Σ min(p, q) {_number(counters.expected_alpha)})",
            f"{_number(counters.tokens_per_round)} tokens/round",
        ]
    parts += [f"target {target}", f"draft {draft or 'none'}"]
    if brought:
        parts.append("its own sampling: " + ", ".join(f"{name} {_plain(value)}" for name, value in brought.items()))
    parts.append(f"seed {seed}")
    return Text(" · ".join(parts).translate(ONE_LINE), style="dim")


def to_short_summary(counters: Counters, timing: Timing, *, reason: str | None) -> str:
    """What a summary says first, for a chat that gives one after each answer."""
    drafted = [_accepted(counters)] if counters.drafted else []
    return " · ".join([*_amount(counters, timing, reason), *drafted])


def to_bars(counters: Counters) -> list[str]:
    """How often the first, second, … token of a block was kept, a line each."""
    lines = []
    for position, (drafted, accepted) in enumerate(zip(counters.drafted_at, counters.accepted_at, strict=True), 1):
        share = accepted / drafted
        lines.append(f"position {position:>2} {_bar(share)} {share:4.0%} of {drafted}")
    return lines


def to_stats(counters: Counters, timing: Timing) -> dict[str, Any]:
    """The `stats` object of --json: strict JSON, null where nothing was counted."""
    return {
        "rounds": counters.rounds,
        "drafted": counters.drafted,
        "accepted": counters.accepted,
        "corrections": counters.corrections,
        "bonus": counters.bonus,
        "examined": counters.examined,
        "alpha": counters.alpha,
        "expected_alpha": counters.expected_alpha,
        "acceptance_rate": counters.acceptance_rate,
        "tokens_per_round": counters.tokens_per_round,
        "drafters": {name: {"drafted": each[0], "accepted": each[1]} for name, each in counters.by_source.items()},
        "drafted_at": counters.drafted_at,
        "accepted_at": counters.accepted_at,
        "tokens_per_second": timing.rate(counters.tokens),
        "seconds": {name: round(seconds, 6) for name, seconds in asdict(timing).items()},
    }


def to_logprobs(logprobs: Sequence[TokenLogprobs], texts: Sequence[bytes]) -> list[dict[str, Any]]:
    """The `logprobs` list of --json; `texts` are the bytes of each token. Impossible tokens have null."""

    def to_json(one: Logprob) -> dict[str, Any]:
        chain = one.chain if one.chain > -math.inf else None
        raw = one.raw if one.raw > -math.inf else None
        text = texts[one.token]
        return {
            "token": one.token,
            "text": text.decode("utf-8", "replace"),
            "bytes": list(text),
            "logprob": raw,
            "chain_logprob": chain,
        }

    return [to_json(each.emitted) | {"best": [to_json(one) for one in each.best]} for each in logprobs]


def _amount(counters: Counters, timing: Timing, reason: str | None) -> list[str]:
    ending = ENDINGS.get(reason or "", "")
    return [
        f"{counters.tokens} token{'' if counters.tokens == 1 else 's'}{ending}",
        f"{_number(timing.rate(counters.tokens), 1)} tokens/s",
    ]


def _bar(share: float) -> str:
    filled = round(BAR_CELLS * share)
    return "━" * filled + "╌" * (BAR_CELLS - filled)


def _accepted(counters: Counters) -> str:
    rate = f" ({_percent(counters.accepted, counters.drafted)} %)" if counters.drafted else ""
    return f"accepted {counters.accepted}/{counters.drafted}{rate}"


def _plain(value: Any) -> str:
    return ";".join(value) if isinstance(value, tuple) else f"{value:g}"


def _number(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f}" if whole else MISSING
