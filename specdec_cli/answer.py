"""One question, answered on a terminal, into a pipe or as JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

from specdec_cli import memory
from specdec_cli.catalog import PredictedText, Source
from specdec_cli.core.draft_length import LONGEST
from specdec_cli.core.estimates import FIRST_SURVIVAL
from specdec_cli.core.theory import find_loss
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_MODEL, EXIT_OK
from specdec_cli.generation import Generation
from specdec_cli.llama import library
from specdec_cli.llama.weights import Weights
from specdec_cli.question import Question, read_grammar, to_request, to_tokens
from specdec_cli.render import to_logprobs, to_loss_hint, to_progress, to_stats, to_status, to_summary
from specdec_cli.sampling_settings import SEQUENCE_BREAKERS, to_settings
from specdec_cli.session import Session
from specdec_cli.settings import Listener
from specdec_cli.status import StatusLine
from specdec_cli.terminal import Terminal

ENOUGH: Final = 10
"""Examined tokens from which α means something."""
JSON_ESCAPES: Final = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Control characters that JSON allows in a string and that a terminal would obey."""


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What is shown: `stats` None is a summary if stderr is a terminal."""

    json: bool
    stats: bool | None
    color_tokens: bool
    verbose: bool


def answer(question: Question, terminal: Terminal, output: OutputOptions) -> int:
    """Load the pair, answer, and report; the exit code.

    Raises:
        SpecdecError: the pair or the prompt cannot be used.
        PipeClosedError: nobody reads the answer any more.
    """
    started = time.perf_counter()
    grammar = read_grammar(question.wishes, terminal.notice)
    status = StatusLine(terminal, hidden=output.verbose)
    library.show_log(terminal.log if output.verbose else None)
    with _last_words(terminal, status), _open(question, status) as session:
        if question.memory is not None:
            session.remembered = memory.load(question.memory, session.fingerprint)
        generation = session.generate(to_tokens(question, session), to_request(question.wishes, session, grammar))
        text = _stream(generation, status, output)
        generation.timing.total = time.perf_counter() - started
        if question.memory is not None:
            memory.remember(question.memory, session.fingerprint, generation.tokens)
        if output.json:
            terminal.write_text(_to_json(question, session, generation, text))
        if output.stats if output.stats is not None else terminal.shows_messages and not terminal.quiet:
            _summarise(generation, session, question, terminal)
    return EXIT_INTERRUPTED if generation.finish_reason == "interrupted" else EXIT_OK


@contextmanager
def _last_words(terminal: Terminal, status: StatusLine) -> Iterator[None]:
    """If C code gives up inside, say so in one line and leave; nothing else can run any more."""

    def leave(message: str) -> None:
        status.close()
        terminal.error(f"llama.cpp stopped: {message}", "--verbose shows its whole log")
        os._exit(EXIT_MODEL)

    library.on_abort(leave)
    try:
        yield
    finally:
        status.close()
        library.on_abort(None)
        library.show_log(None)


def _open(question: Question, status: StatusLine) -> Session:
    def progress(task: str, share: float | None) -> None:
        status.show_loading(to_progress(task, share))

    return Session(question.pair, question.settings, Listener(progress, status.notice))


def _stream(generation: Generation, status: StatusLine, output: OutputOptions) -> str:
    """Write the answer as it comes, unless it goes into JSON; the whole text."""
    parts: list[str] = []
    status.show_loading(f"reading {generation.prompt_tokens} tokens")
    for segments in generation:
        parts += [segment.text for segment in segments]
        if segments and not output.json:
            status.write(segments, by_kind=output.color_tokens)
        if status.visible:
            status.show(to_status(generation.counters, generation.timing, generation.draft_tokens))
    status.close(interrupted=generation.finish_reason == "interrupted")
    return "".join(parts)


def _summarise(generation: Generation, session: Session, question: Question, terminal: Terminal) -> None:
    names = [_name(each, session) for each in session.pair.drafters]
    summary = to_summary(
        generation.counters,
        generation.timing,
        reason=generation.finish_reason,
        seed=generation.request.seed,
        target=_where(session.target),
        draft=", ".join(names) if generation.draft_tokens else None,
        brought={name: value for name, value in session.brought.items() if name not in question.wishes.chain},
    )
    terminal.show(summary)
    if (hint := _loss_hint(generation, session)) is not None:
        terminal.notice(hint)


def _loss_hint(generation: Generation, session: Session) -> str | None:
    """Why drafting does not pay, if it does not and the costs are known."""
    if generation.draft_tokens != "auto" or session.costs is None:
        return None
    counters, source = generation.counters, ModelDrafter.name if session.draft else LookupDrafter.name
    alpha = counters.alpha if counters.alpha is not None and counters.examined >= ENOUGH else FIRST_SURVIVAL
    loss = find_loss(alpha, session.costs, source, LONGEST)
    return None if loss is None else to_loss_hint(loss, session.costs, source, alpha)


def _name(source: Source, session: Session) -> str:
    if isinstance(source, PredictedText):
        return f"text {source.path.name}"
    return "lookup" if source == "lookup" or session.draft is None else _where(session.draft)


def _where(weights: Weights) -> str:
    return f"{weights.path.name} on {weights.backend}"


def _to_json(question: Question, session: Session, generation: Generation, text: str) -> str:
    """The object of --json, on one line."""
    request, settings = generation.request, asdict(session.settings)
    settings |= to_settings(request.chain) | {
        "pair": session.pair.name,
        "rule": request.rule,
        "costs": asdict(session.costs) if session.costs and generation.draft_tokens == "auto" else None,
        "dry_sequence_breaker": list(question.wishes.chain.get("dry_sequence_breaker", SEQUENCE_BREAKERS)),
        "draft_temperature": request.draft_temperature,
        "grammar": request.grammar.text if request.grammar else None,
        "draft_tokens": generation.draft_tokens,
        "max_tokens": request.max_tokens,
        "ctx_size": generation.context_size,
        "stop": list(request.stops),
        "system": question.system,
        "raw": question.raw,
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
    return json.dumps(result, ensure_ascii=False, allow_nan=False, default=str).translate(JSON_ESCAPES) + "\n"


def _to_draft(session: Session) -> dict[str, Any] | None:
    drafters = [_to_drafter(each, session) for each in session.pair.drafters]
    if len(drafters) < 2:
        return drafters[0] if drafters else None
    return {"kind": "chain", "drafters": drafters}


def _to_drafter(source: Source, session: Session) -> dict[str, Any]:
    if isinstance(source, PredictedText):
        return {"kind": "text", "path": str(source.path)}
    return {"kind": "lookup"} if session.draft is None or source == "lookup" else _to_model(session.draft, kind="model")


def _to_model(weights: Weights, **kind: str) -> dict[str, Any]:
    return kind | {
        "path": str(weights.path),
        "description": weights.description,
        "bytes": weights.bytes,
        "backend": weights.backend,
    }
