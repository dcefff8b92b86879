"""An answer as the JSON that the page's script reads. Texts are whole characters, at the token that completes each."""

from __future__ import annotations

from typing import Any, Final

from specdec_cli.core.text import TextStream
from specdec_cli.traces.page.facts import to_facts, to_figures
from specdec_cli.traces.trace import Drafted, Examined, Last, Token, TracedAnswer, TracedRound

LONGEST_TEXT: Final = 400
"""Characters of a token that are shown. No real one comes near."""


def to_payload(answer: TracedAnswer) -> dict[str, Any]:
    """All that the page tells of `answer`."""
    texts = iter(emitted_texts(answer))
    return {
        "rule": answer.header.rule,
        "figures": to_figures(answer),
        "facts": to_facts(answer),
        "rounds": [_round(each, [next(texts) for _ in each.emitted]) for each in answer.rounds],
    }


def emitted_texts(answer: TracedAnswer) -> list[str]:
    """What each emitted token completed of the text: "" within a character that a later one completes."""
    stream: TextStream[int] = TextStream()
    tokens = [emitted.token for each in answer.rounds for emitted in each.emitted]
    texts = [""] * len(tokens)
    segments = [segment for index, token in enumerate(tokens) for segment in stream.feed(token.data, index)]
    for segment in segments + stream.finish(len(tokens) - 1):
        texts[segment.mark] += segment.text
    return texts


def shorten(text: str) -> str:
    """`text`, or its beginning and how long it is."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text):,} characters)"


def _spell(token: Token) -> str:
    """A token by itself; bytes that are no UTF-8 as Python writes them."""
    return shorten(token.data.decode("utf-8", "backslashreplace"))


def _round(one: TracedRound, texts: list[str]) -> dict[str, Any]:
    outlook = one.outlook
    return {
        "index": one.index,
        "place": one.place,
        "drafter": one.drafter,
        "drafted": [_drafted(each) for each in one.drafted],
        "emitted": [
            {"id": each.token.id, "kind": each.kind, "text": shorten(text), "own": _spell(each.token)}
            for each, text in zip(one.emitted, texts, strict=True)
        ],
        "last": _last(one.last) if one.last else None,
        "ended": one.ended,
        "seconds": [one.seconds.draft, one.seconds.verify, one.seconds.sample],
        "outlook": outlook
        and {"kept": outlook.kept, "tokens": outlook.tokens, "cost": outlook.cost, "rate": outlook.rate},
    }


def _drafted(one: Drafted) -> dict[str, Any]:
    return {
        "id": one.token.id,
        "text": _spell(one.token),
        "confidence": one.confidence,
        "q": one.q,
        "entropy": one.q_entropy,
        "decision": one.decision,
        "probability": one.probability,
        "draw": one.draw,
        "examined": _examined(one.examined) if one.examined else None,
    }


def _examined(one: Examined) -> dict[str, Any]:
    return {
        "p": one.p,
        "ratio": one.ratio,
        "overlap": one.overlap,
        "entropy": one.p_entropy,
        "top": [[each.id, shorten(each.text), each.p, each.q] for each in one.top],
    }


def _last(one: Last) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "draw": one.draw,
        "entropy": one.entropy,
        "law": [[each.id, shorten(each.text), each.probability] for each in one.law],
    }
