"""Traces made by hand, for what shows and sums them up."""

from __future__ import annotations

from typing import Any

from specdec_cli.core.costs import Costs
from specdec_cli.core.draft_length import Outlook
from specdec_cli.core.step import RoundSeconds
from specdec_cli.core.verify import Kind
from specdec_cli.traces.trace import (
    Candidate,
    Chance,
    Decided,
    Drafted,
    Emitted,
    End,
    Examined,
    Header,
    Last,
    Token,
    TracedRound,
)

END = End("stop", {})


def header(**other: Any) -> Header:
    fields: dict[str, Any] = {
        "specdec": "0.1.0",
        "target": "big.gguf on CPU",
        "draft": "small.gguf on CPU",
        "rule": "token",
        "seed": 7,
        "turn": 0,
        "draft_tokens": 3,
        "prompt_tokens": 41,
        "vocabulary": 49152,
        "sampling": {"temperature": 0.8, "top_k": 40, "repeat_penalty": 1.0, "dry_multiplier": 0.0},
        "draft_temperature": "auto",
        "costs": Costs((0.02, 0.03, 0.04, 0.05), {"model": (0.004,)}),
        "label": None,
    }
    return Header(**{**fields, **other})


def token(text: str, data: bytes | None = None) -> Token:
    return Token(len(text), text, text.encode("utf-8", "replace") if data is None else data)


def drafted(text: str, decision: Decided, **other: Any) -> Drafted:
    top = (Candidate(5, text, 0.4, 0.2), Candidate(6, "other", 0.1, 0.8))
    seen = Examined(0.4, 2.0, 0.75, 1.5, top) if decision in ("accepted", "rejected") else None
    fields: dict[str, Any] = {"probability": None, "draw": None, "examined": seen, **other}
    return Drafted(token(text), 0.5, 0.2, 1.25, decision, **fields)


def last(kind: Kind, *texts: str, draw: float | None = 0.25) -> Last:
    chances = [0.5 / (2**at) for at in range(len(texts))]
    return Last(kind, draw, 0.7, tuple(Chance(len(text), text, c) for text, c in zip(texts, chances, strict=True)))


def round_(index: int, *drafts: Drafted, own: str | None = "dog", outlook: Outlook | None = None) -> TracedRound:
    """A round that ends with a token of the target's `own`: a correction if one of `drafts` was rejected."""
    kept = [Emitted(each.token, Kind.ACCEPTED) for each in drafts if each.decision == "accepted"]
    kind = Kind.BONUS if len(kept) == len(drafts) else Kind.CORRECTION
    return TracedRound(
        index=index,
        place=41 + index,
        drafter="model",
        drafted=drafts,
        emitted=(*kept, *([] if own is None else [Emitted(token(own), kind)])),
        last=None if own is None else last(kind, own, "cat"),
        ended=own is None,
        seconds=RoundSeconds(0.01, 0.08, 0.002),
        outlook=outlook,
    )


def kept_two_of_three() -> TracedRound:
    return round_(
        0,
        drafted(" the", "accepted", probability=1.0),
        drafted(" cat", "accepted", probability=0.9, draw=0.31),
        drafted(" sat", "rejected", probability=0.2, draw=0.75),
        outlook=Outlook((0.8, 0.6, 0.4), 2.8, 1.9, 1.2),
    )
