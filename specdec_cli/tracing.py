"""Answers that leave a trace, if one is asked for: what of a session and an answer goes into `traces.writing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from specdec_cli.core.step import Step
from specdec_cli.generation import Generation
from specdec_cli.limits import DEFAULT_RULE
from specdec_cli.render import to_stats
from specdec_cli.sampling_settings import to_settings
from specdec_cli.session import Session
from specdec_cli.telling import name_draft, name_weights
from specdec_cli.traces.trace import Header
from specdec_cli.traces.writing import TraceWriter


@dataclass(frozen=True, slots=True)
class Tracer:
    """Writes the answers of one session with `writer`; without one it does nothing.

    `watch` goes into `Session.generate`, `begin` comes before the answer is iterated, `end` once it ended.
    """

    writer: TraceWriter | None = None

    @property
    def watch(self) -> Callable[[Step], object] | None:
        """Who is told of each round, if somebody is."""
        return None if self.writer is None else self.writer.write

    def begin(self, generation: Generation, session: Session, label: Mapping[str, Any] | None = None) -> None:
        """Write what was asked of which pair; `label` tells answers of one file apart."""
        if self.writer is not None:
            self.writer.begin(to_header(generation, session, label), session.tokenizer)

    def end(self, generation: Generation) -> None:
        """Write how it ended, if it did, and its statistics."""
        if self.writer is not None and generation.finish_reason is not None:
            self.writer.end(generation.finish_reason, to_stats(generation.counters, generation.timing))


@contextmanager
def open_tracer(path: Path | None, notice: Callable[[str], object]) -> Iterator[Tracer]:
    """One that writes to `path`, before anything loads; `notice` hears of a disk that fails later.

    Raises:
        UsageError: the file cannot be written, or is there and is no trace.
    """
    if path is None:
        yield Tracer()
        return
    with TraceWriter(path, notice) as writer:
        yield Tracer(writer)


def to_header(generation: Generation, session: Session, label: Mapping[str, Any] | None) -> Header:
    """What was asked of which pair."""
    request, drafts = generation.request, bool(generation.draft_tokens)
    return Header(
        specdec=version("specdec-cli"),
        target=name_weights(session.target),
        draft=name_draft(session) if drafts else None,
        rule=request.rule or DEFAULT_RULE,
        seed=request.seed,
        turn=request.turn,
        draft_tokens=generation.draft_tokens,
        prompt_tokens=generation.prompt_tokens,
        vocabulary=session.target.vocabulary_size,
        sampling=to_settings(request.chain),
        draft_temperature=request.draft_temperature or "auto",
        costs=session.known_costs(),
        label=label,
    )
