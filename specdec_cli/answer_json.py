"""The object of --json: one answer, all that it came from, and how it went."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from specdec_cli.catalog import NgramFile, PredictedText, Source
from specdec_cli.generation import Generation
from specdec_cli.json_line import to_line
from specdec_cli.llama.weights import Weights
from specdec_cli.placing_keys import to_flat
from specdec_cli.question import Wishes
from specdec_cli.render import to_logprobs, to_stats
from specdec_cli.sampling_settings import SEQUENCE_BREAKERS, to_settings
from specdec_cli.session import Session


def to_json(
    text: str, generation: Generation, session: Session, wishes: Wishes, *, system: str | None, raw: bool
) -> str:
    """The object of --json about an answer that ended, on one line."""
    request, settings = generation.request, to_flat(session.settings)
    settings |= to_settings(request.chain) | {
        "pair": session.pair.name,
        "rule": request.rule,
        "costs": asdict(session.costs) if session.costs and generation.draft_tokens == "auto" else None,
        "dry_sequence_breaker": list(wishes.chain.get("dry_sequence_breaker", SEQUENCE_BREAKERS)),
        "draft_temperature": request.draft_temperature,
        "grammar": request.grammar.text if request.grammar else None,
        "draft_tokens": generation.draft_tokens,
        "max_tokens": request.max_tokens,
        "ctx_size": generation.context_size,
        "stop": list(request.stops),
        "system": system,
        "raw": raw,
    }
    result: dict[str, Any] = {
        "text": text,
        "finish_reason": generation.finish_reason,
        "prompt_tokens": generation.prompt_tokens,
        "tokens": generation.counters.tokens,
        "seed": generation.request.seed,
        "target": _to_model(session.target),
        "draft": _to_draft(session),
        "settings": settings,
        "stats": to_stats(generation.counters, generation.timing),
    }
    if request.logprobs is not None:
        result["logprobs"] = to_logprobs(generation.logprobs, session.texts.pieces)
    return to_line(result)


def _to_draft(session: Session) -> dict[str, Any] | None:
    drafters = [_to_drafter(each, session) for each in session.pair.drafters]
    if len(drafters) < 2:
        return drafters[0] if drafters else None
    return {"kind": "chain", "drafters": drafters}


def _to_drafter(source: Source, session: Session) -> dict[str, Any]:
    if isinstance(source, PredictedText):
        return {"kind": "text", "path": str(source.path)}
    if isinstance(source, NgramFile):
        return {"kind": "table", "path": str(source.path)}
    return {"kind": "lookup"} if session.draft is None or source == "lookup" else _to_model(session.draft, kind="model")


def _to_model(weights: Weights, **kind: str) -> dict[str, Any]:
    return kind | {
        "path": str(weights.path),
        "description": weights.description,
        "bytes": weights.bytes,
        "backend": weights.backend,
    }
