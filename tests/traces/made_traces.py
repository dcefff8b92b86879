"""Traces made by hand, for what reads them: a round of each kind, with the texts that a test wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from specdec_cli.core.draft_length import Outlook
from specdec_cli.core.step import RoundSeconds
from specdec_cli.core.verify import Kind
from specdec_cli.traces.trace import (
    Candidate,
    Chance,
    Decided,
    Drafted,
    Emitted,
    Examined,
    Last,
    Token,
    Trace,
    TracedAnswer,
    TracedRound,
)
from tests.traces.made import END
from tests.traces.made import header as to_header

SECONDS: Final = RoundSeconds(draft=0.004, verify=0.02, sample=0.001)


def to_token(data: str | bytes) -> Token:
    """A token with this text, or these bytes."""
    data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    return Token(sum(data) % 49152, data.decode("utf-8", "replace"), data)


def drafted_token(
    data: str | bytes, decision: Decided, *, p: float = 0.6, q: float = 0.75, draw: float | None = None
) -> Drafted:
    """A drafted token with p and q, and the draw that decided on it by the token rule."""
    token = to_token(data)
    top = (Candidate(token.id, token.text, p, q), Candidate(7, " other", 1 - p, 1 - q))
    examined = None if decision == "unexamined" else Examined(p, p / q, min(p, q) + 1 - max(p, q), 0.5, top)
    chance = None if examined is None else min(1.0, p / q)
    return Drafted(token, q, q, 0.6, decision, chance, draw, examined)


def own_token(data: str | bytes, kind: Kind) -> tuple[Emitted, Last]:
    """The token that the target added, and the law that it came from."""
    token = to_token(data)
    law = (Chance(token.id, token.text, 0.9), Chance(7, " other", 0.1))
    return Emitted(token, kind), Last(kind, 0.31, 0.33, law)


def kept_round(index: int, drafts: Sequence[str | bytes], bonus: str | bytes) -> TracedRound:
    """All `drafts` are accepted, and `bonus` follows."""
    drafted = tuple(drafted_token(each, "accepted", draw=0.3) for each in drafts)
    own, last = own_token(bonus, Kind.BONUS)
    emitted = (*(Emitted(each.token, Kind.ACCEPTED) for each in drafted), own)
    return TracedRound(index, 10 + index, "model", drafted, emitted, last, False, SECONDS, _outlook(len(drafts)))


def corrected_round(
    index: int, accepted: Sequence[str | bytes], rejected: Sequence[str | bytes], correction: str | bytes
) -> TracedRound:
    """`accepted` are kept, the first of `rejected` is not, those behind it are not examined; `correction` follows."""
    kept = tuple(drafted_token(each, "accepted", draw=0.3) for each in accepted)
    lost = tuple(
        drafted_token(each, "unexamined" if position else "rejected", draw=None if position else 0.93)
        for position, each in enumerate(rejected)
    )
    own, last = own_token(correction, Kind.CORRECTION)
    emitted = (*(Emitted(each.token, Kind.ACCEPTED) for each in kept), own)
    drafted = kept + lost
    return TracedRound(index, 10 + index, "model", drafted, emitted, last, False, SECONDS, _outlook(len(drafted)))


def plain_round(index: int, token: str | bytes) -> TracedRound:
    """Nothing is drafted."""
    own, last = own_token(token, Kind.BONUS)
    return TracedRound(index, 10 + index, "", (), (own,), last, False, SECONDS, None)


def to_answer(rounds: Sequence[TracedRound], *, label: Mapping[str, Any] | None = None, **header: Any) -> TracedAnswer:
    """An answer that ended by itself."""
    values = {
        "draft_tokens": "auto",
        "prompt_tokens": 10,
        "sampling": {"temperature": 1.0, "samplers": ["top_k", "temperature"]},
        "costs": None,
        "label": label,
    }
    return TracedAnswer(to_header(**(values | header)), tuple(rounds), END)


def to_trace(*rounds: TracedRound) -> Trace:
    """A trace with one answer."""
    return Trace((to_answer(rounds),))


def _outlook(length: int) -> Outlook:
    kept = tuple(0.8 ** (position + 1) for position in range(length))
    return Outlook(kept, 1 + sum(kept), 1 + 0.25 * length, 1.2)
