"""One question, answered on a terminal, into a pipe or as JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from specdec_cli.catalog import Pair
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_MODEL, EXIT_OK
from specdec_cli.generation import Generation, Grammar, Request
from specdec_cli.llama import library
from specdec_cli.llama.chat_template import Message
from specdec_cli.llama.grammar import read_grammar
from specdec_cli.llama.json_schema import json_schema_to_grammar
from specdec_cli.llama.weights import Weights
from specdec_cli.render import to_loading, to_logprobs, to_stats, to_status, to_summary
from specdec_cli.sampling_settings import to_settings
from specdec_cli.session import Listener, ModelSettings, Session
from specdec_cli.status import StatusLine
from specdec_cli.terminal import Terminal

JSON_ESCAPES: Final = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Control characters that JSON allows in a string and that a terminal would obey."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user says of an answer. `chain` holds only what is said, see `specdec_cli.sampling_settings`.

    `draft_temperature` is auto, same or a number; `grammar` is a GBNF file, `json_schema` a file or the schema.
    """

    chain: Mapping[str, Any]
    rule: str
    seed: int
    draft_tokens: int | None
    draft_temperature: str
    max_tokens: int | None
    stops: tuple[str, ...]
    grammar: Path | None
    json_schema: str | None
    logprobs: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of which pair, and how."""

    pair: Pair
    settings: ModelSettings
    wishes: Wishes
    text: str
    system: str | None
    raw: bool


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
    status = StatusLine(terminal, hidden=output.verbose)
    library.show_log(terminal.log if output.verbose else None)
    grammar = _read_grammar(question.wishes)
    with _last_words(terminal, status), _open(question, status) as session:
        generation = session.generate(_tokens(question, session), _to_request(question.wishes, session, grammar))
        text = _stream(generation, status, output)
        generation.timing.total = time.perf_counter() - started
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
    def progress(role: str, share: float) -> None:
        status.show_loading(to_loading(role, share))

    return Session(question.pair, question.settings, Listener(progress, status.notice))


def _read_grammar(wishes: Wishes) -> Grammar | None:
    """The grammar of the answer, so that a fault in it is found before anything loads."""
    if wishes.grammar is not None:
        return Grammar(read_grammar(wishes.grammar), f"grammar {wishes.grammar}")
    if wishes.json_schema is not None:
        return Grammar(json_schema_to_grammar(wishes.json_schema), "the grammar of --json-schema")
    return None


def _to_request(wishes: Wishes, session: Session, grammar: Grammar | None) -> Request:
    chain = session.chain(wishes.chain)
    heat = wishes.draft_temperature
    return Request(
        chain=chain,
        seed=wishes.seed,
        draft_tokens=wishes.draft_tokens,
        max_tokens=wishes.max_tokens,
        stops=wishes.stops,
        rule=wishes.rule,
        draft_temperature=None if heat == "auto" else chain.temperature if heat == "same" else float(heat),
        grammar=grammar,
        logprobs=wishes.logprobs,
    )


def _tokens(question: Question, session: Session) -> list[int]:
    if question.raw:
        return session.prompt_from_text(question.text)
    messages: list[Message] = [{"role": "user", "content": question.text}]
    if question.system is not None:
        messages.insert(0, {"role": "system", "content": question.system})
    return session.prompt_from_messages(messages)


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
    draft = _where(session.draft) if session.draft else str(session.pair.draft)
    summary = to_summary(
        generation.counters,
        generation.timing,
        reason=generation.finish_reason,
        seed=generation.request.seed,
        target=_where(session.target),
        draft=draft if generation.draft_tokens else None,
        brought={name: value for name, value in session.brought.items() if name not in question.wishes.chain},
    )
    terminal.show(summary)


def _where(weights: Weights) -> str:
    return f"{weights.path.name} on {weights.backend}"


def _to_json(question: Question, session: Session, generation: Generation, text: str) -> str:
    """The object of --json, on one line."""
    request, settings = generation.request, asdict(session.settings)
    settings |= to_settings(request.chain) | {
        "pair": session.pair.name,
        "rule": request.rule,
        "draft_temperature": question.wishes.draft_temperature,
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
    return json.dumps(result, ensure_ascii=False, allow_nan=False).translate(JSON_ESCAPES) + "\n"


def _to_draft(session: Session) -> dict[str, Any] | None:
    if session.pair.draft == "none":
        return None
    return {"kind": "lookup"} if session.draft is None else {"kind": "model", **_to_model(session.draft)}


def _to_model(weights: Weights) -> dict[str, Any]:
    return {
        "path": str(weights.path),
        "description": weights.description,
        "bytes": weights.bytes,
        "backend": weights.backend,
    }
