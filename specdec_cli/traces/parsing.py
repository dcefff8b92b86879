"""From the object of a line to what it says: a header, a round or an end. Knows no files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from specdec_cli.core.costs import Costs
from specdec_cli.core.draft_length import Outlook
from specdec_cli.core.step import RoundSeconds
from specdec_cli.core.verify import Kind
from specdec_cli.limits import LONGEST_DRAFT, DraftTokens
from specdec_cli.traces.fields import LARGEST, DamageError, Fields, to_list, to_real, to_text, to_whole
from specdec_cli.traces.trace import (
    LARGEST_RATIO,
    SCHEMA,
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
    TraceRecord,
)

LARGEST_TOKEN: Final = 2**31 - 1
DECISIONS: Final[tuple[Decided, ...]] = ("accepted", "rejected", "unexamined", "cut")


class SchemaError(Exception):
    """The record is of another `schema`."""

    def __init__(self, schema: int) -> None:
        super().__init__(schema)
        self.schema = schema


def to_record(value: Any) -> TraceRecord:
    """What `value`, as JSON has it, says.

    Raises:
        DamageError: it is not what a trace has.
        SchemaError: it is what the trace of another specdec has.
    """
    fields = Fields(value, "it")
    return RECORDS[fields.word("type", tuple(RECORDS))](fields)


def _to_header(fields: Fields) -> Header:
    if (schema := fields.whole("schema")) != SCHEMA:
        raise SchemaError(schema)
    return Header(
        specdec=fields.text("specdec"),
        target=fields.text("target"),
        draft=fields.maybe("draft", fields.text),
        rule=fields.text("rule"),
        seed=fields.whole("seed", high=2**64 - 1),
        turn=fields.whole("turn"),
        draft_tokens=_to_draft_tokens(fields),
        prompt_tokens=fields.whole("prompt_tokens"),
        vocabulary=fields.whole("vocabulary"),
        sampling=fields.table("sampling"),
        draft_temperature=fields.text("draft_temperature"),
        costs=fields.maybe("costs", lambda name: _to_costs(fields.inner(name))),
        label=fields.maybe("label", fields.table),
    )


def _to_draft_tokens(fields: Fields) -> DraftTokens:
    return "auto" if fields.given("draft_tokens") == "auto" else fields.whole("draft_tokens", high=LONGEST_DRAFT)


def _to_costs(fields: Fields) -> Costs:
    drafts = {name: _to_passes(each, name) for name, each in fields.table("drafts").items()}
    return Costs(_to_passes(fields.given("target"), "target"), drafts)


def _to_passes(value: Any, name: str) -> tuple[float, ...]:
    passes = tuple(to_real(each, name, 0, LARGEST) for each in to_list(value, name))
    if not passes or passes[0] == 0:
        raise DamageError(f'"{name}" holds no costs')
    return passes


def _to_round(fields: Fields) -> TracedRound:
    return TracedRound(
        index=fields.whole("round"),
        place=fields.whole("place"),
        drafter=fields.text("drafter"),
        drafted=fields.each("drafted", _to_drafted),
        emitted=fields.each("emitted", _to_emitted),
        last=fields.maybe("last", lambda name: _to_last(fields.inner(name))),
        ended=fields.flag("ended"),
        seconds=_to_seconds(fields.inner("seconds")),
        outlook=fields.maybe("controller", lambda name: _to_outlook(fields.inner(name))),
    )


def _to_drafted(value: Any) -> Drafted:
    fields = Fields(value, "a drafted token")
    decision = fields.word("decision", DECISIONS)
    if decision in ("accepted", "rejected") and not fields.has("p"):
        raise DamageError(f'a token is {decision}, and has no "p"')
    return Drafted(
        token=_to_token(fields),
        confidence=fields.chance("confidence"),
        q=fields.chance("q"),
        q_entropy=fields.real("q_entropy"),
        decision=decision,
        probability=fields.maybe("probability", fields.chance),
        draw=fields.maybe("draw", fields.chance),
        examined=_to_examined(fields) if fields.has("p") else None,
    )


def _to_examined(fields: Fields) -> Examined:
    return Examined(
        p=fields.chance("p"),
        ratio=fields.maybe("ratio", lambda name: fields.real(name, high=LARGEST_RATIO)),
        overlap=fields.chance("overlap"),
        p_entropy=fields.real("p_entropy"),
        top=fields.each("top", _to_candidate),
    )


def _to_candidate(value: Any) -> Candidate:
    token, text, p, q = to_list(value, "top", 4)
    return Candidate(_to_id(token), to_text(text, "top"), to_real(p, "top", 0, 1), to_real(q, "top", 0, 1))


def _to_chance(value: Any) -> Chance:
    token, text, chance = to_list(value, "from", 3)
    return Chance(_to_id(token), to_text(text, "from"), to_real(chance, "from", 0, 1))


def _to_emitted(value: Any) -> Emitted:
    fields = Fields(value, "an emitted token")
    return Emitted(_to_token(fields), fields.word("kind", tuple(Kind)))


def _to_last(fields: Fields) -> Last:
    return Last(
        kind=fields.word("kind", (Kind.CORRECTION, Kind.BONUS)),
        draw=fields.maybe("draw", fields.chance),
        entropy=fields.real("entropy"),
        law=fields.each("from", _to_chance),
    )


def _to_seconds(fields: Fields) -> RoundSeconds:
    return RoundSeconds(fields.real("draft"), fields.real("verify"), fields.real("sample"))


def _to_outlook(fields: Fields) -> Outlook:
    kept = fields.each("kept", lambda value: to_real(value, "kept", 0, 1))
    return Outlook(kept, fields.real("tokens"), fields.real("cost"), fields.real("rate"))


def _to_token(fields: Fields) -> Token:
    token, text = fields.whole("token", high=LARGEST_TOKEN), fields.text("text")
    if not fields.has("bytes"):
        return Token(token, text, text.encode("utf-8", "replace"))
    return Token(token, text, bytes(fields.each("bytes", lambda value: to_whole(value, "bytes", 0, 255))))


def _to_id(value: Any) -> int:
    return to_whole(value, "token", 0, LARGEST_TOKEN)


def _to_end(fields: Fields) -> End:
    return End(fields.text("finish_reason"), fields.table("stats"))


RECORDS: Final[Mapping[str, Callable[[Fields], TraceRecord]]] = {
    "answer": _to_header,
    "round": _to_round,
    "end": _to_end,
}
"""By their types."""
