"""What is written of an answer: the three kinds of record, as JSON has them. `docs/trace.md` says what they mean.

A round of a small model takes 6 ms, and its record may take 3 % of that: each number is rounded once, and what is
said of a token is made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final, Protocol

from specdec_cli.core.costs import Costs
from specdec_cli.core.outline import Outline, outline
from specdec_cli.core.scores import NO_TOKEN
from specdec_cli.core.step import RoundSeconds, Step
from specdec_cli.core.verify import Kind
from specdec_cli.traces.trace import LARGEST_RATIO, SCHEMA, Decided, End, Header

LIKELIEST: Final = 8
"""Tokens that a distribution is shown by."""

Record = dict[str, Any]


class Spelling(Protocol):
    """How the tokens of a vocabulary are spelled."""

    def piece(self, token: int) -> bytes:
        """The bytes that `token` prints; none for a control token."""
        ...

    def special_text(self, token: int | None) -> str:
        """How a control token is written."""
        ...


class Spelled:
    """Tokens as records have them, each made once."""

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling
        self._printed: dict[int, Record] = {}
        self._named: dict[int, Record] = {}

    def printed(self, token: int) -> Record:
        """`token` and what it prints."""
        if token not in self._printed:
            self._printed[token] = _to_token(token, self._spelling.piece(token))
        return self._printed[token]

    def named(self, token: int) -> Record:
        """`token` and how it is written: a control token, which prints nothing, has a name."""
        if token not in self._named:
            data = self._spelling.piece(token) or self._spelling.special_text(token).encode()
            self._named[token] = _to_token(token, data)
        return self._named[token]


def _to_token(token: int, data: bytes) -> Record:
    try:
        return {"token": token, "text": data.decode()}
    except UnicodeDecodeError:
        return {"token": token, "text": data.decode("utf-8", "replace"), "bytes": list(data)}


def to_header(header: Header) -> Record:
    """The record before the rounds of an answer."""
    costs = None if header.costs is None else _costs(header.costs)
    return {"type": "answer", "schema": SCHEMA, **asdict(header), "costs": costs}


def _costs(costs: Costs) -> Record:
    return {
        "target": [_digits(seconds) for seconds in costs.target],
        "drafts": {name: [_digits(seconds) for seconds in passes] for name, passes in costs.drafts.items()},
    }


def to_end(end: End) -> Record:
    """The record behind them."""
    return {"type": "end", "finish_reason": end.finish_reason, "stats": dict(end.stats)}


def to_round(step: Step, spelled: Spelled) -> Record:
    """The record of one round."""
    round_ = step.round
    return {
        "type": "round",
        "round": step.index,
        "place": step.place,
        "drafter": step.proposal.source,
        "drafted": [_drafted(step, position, spelled) for position in range(len(step.proposal.tokens))],
        "emitted": [
            {**spelled.printed(token), "kind": kind.value}
            for token, kind in zip(round_.tokens, round_.kinds, strict=True)
        ],
        "last": _last(step, spelled),
        "ended": round_.ended,
        "seconds": _seconds(step.seconds),
        "controller": _controller(step),
    }


def _drafted(step: Step, position: int, spelled: Spelled) -> Record:
    proposal, made = step.proposal, step.decisions.get(position)
    examined = position < len(step.targets)
    token, q = proposal.tokens[position], outline(proposal.distributions[position], LIKELIEST if examined else 0)
    chance = q.at(token)
    record = {
        **spelled.named(token),
        "confidence": _digits(proposal.confidences[position]),
        "q": _digits(chance),
        "q_entropy": round(q.entropy, 4),
        "decision": _decided(step, position),
        "probability": None if made is None else _digits(made.probability),
        "draw": None if made is None or made.draw is None else _digits(made.draw),
    }
    if examined:
        p = outline(step.targets[position], LIKELIEST)
        record |= {
            "p": _digits(p.at(token)),
            "ratio": _ratio(p.at(token), chance),
            "overlap": _digits(_overlap(step, position)),
            "p_entropy": round(p.entropy, 4),
            "top": _top(p, q, token, spelled),
        }
    return record


def _decided(step: Step, position: int) -> Decided:
    if position >= step.round.drafted:
        return "cut"
    if position < step.round.accepted:
        return "accepted"
    return "rejected" if position == len(step.targets) - 1 else "unexamined"


def _overlap(step: Step, position: int) -> float:
    overlaps = step.round.overlaps
    if position < len(overlaps):
        return overlaps[position]
    return step.targets[position].overlap(step.proposal.distributions[position])


def _top(p: Outline, q: Outline, drafted: int, spelled: Spelled) -> list[list[Any]]:
    """The likeliest tokens of both and the drafted one, with their probabilities, by p."""
    found = {token: (chance, q.at(token)) for token, chance in p.likeliest}
    found |= {token: (p.at(token), chance) for token, chance in q.likeliest if token not in found}
    if drafted not in found:
        found[drafted] = p.at(drafted), q.at(drafted)
    ordered = sorted(_possible(found.items()), key=lambda one: one[1], reverse=True)
    return [[token, spelled.named(token)["text"], _digits(one), _digits(other)] for token, (one, other) in ordered]


def _possible(found: Iterable[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Those that are tokens, which "none" is not."""
    return [each for each in found if each[0] != NO_TOKEN]


def _last(step: Step, spelled: Spelled) -> Record | None:
    """What the round's own token was drawn from, if it was emitted or ended the answer."""
    round_, emission = step.round, step.emission
    whole = round_.accepted == len(step.targets) - 1
    if emission is None or not (round_.last or (round_.ended and whole)):
        return None
    law = outline(emission.law, LIKELIEST)
    kind = Kind.BONUS if len(step.proposal.tokens) == round_.accepted else Kind.CORRECTION
    likeliest = dict(_possible(law.likeliest))
    if round_.last and (own := round_.tokens[-1]) not in likeliest:
        likeliest[own] = law.at(own)
    return {
        "kind": kind.value,
        "draw": None if emission.draw is None else _digits(emission.draw),
        "entropy": round(law.entropy, 4),
        "from": [[token, spelled.named(token)["text"], _digits(chance)] for token, chance in likeliest.items()],
    }


def _controller(step: Step) -> Record | None:
    outlook = step.outlook
    if outlook is None:
        return None
    numbers = {"tokens": outlook.tokens, "cost": outlook.cost, "rate": outlook.rate, "gain": outlook.gain}
    return {"kept": [_digits(each) for each in outlook.kept]} | {name: _digits(each) for name, each in numbers.items()}


def _seconds(seconds: RoundSeconds) -> Mapping[str, float]:
    return {
        "draft": round(seconds.draft, 6),
        "verify": round(seconds.verify, 6),
        "sample": round(seconds.sample, 6),
    }


def _ratio(p: float, q: float) -> float | None:
    """p/q; None if that is infinite."""
    return _digits(p / q) if q > 0 and p / LARGEST_RATIO < q else None


def _digits(value: float) -> float:
    """Six of them: what float32 knows."""
    return float(f"{value:.6g}")
