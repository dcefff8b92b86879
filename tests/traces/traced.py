"""Answers of the real engine on toys, with the trace that they left and the rounds that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_cli.catalog import Pair
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.step import Step
from specdec_cli.generation import Generation, Request
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from specdec_cli.traces.reading import read_trace
from specdec_cli.traces.trace import Trace, TracedAnswer, TracedRound
from specdec_cli.traces.writing import TraceWriter
from specdec_cli.tracing import Tracer
from tests.engine import UNFILTERED, Notices


@dataclass(frozen=True, slots=True)
class Traced:
    """One answer: what was said, each round as it was seen, and what the file says of it."""

    text: str
    generation: Generation
    steps: list[Step]
    answer: TracedAnswer

    @property
    def rounds(self) -> tuple[TracedRound, ...]:
        return self.answer.rounds


def traced(
    pair: Pair, path: Path, prompt: str = "x", *, chain: SamplingChain = UNFILTERED, seed: int = 1, **request: Any
) -> Traced:
    """What `pair` answers to a raw `prompt`, traced to `path`; without a `draft_tokens` it is 4."""
    request = {"draft_tokens": 4, **request}
    steps: list[Step] = []
    with Session(pair, ModelSettings(threads=1), Notices().listener) as session, TraceWriter(path, _fail) as writer:

        def watch(step: Step) -> None:
            steps.append(step)
            writer.write(step)

        tracer = Tracer(writer)
        generation = session.generate(session.prompt_from_text(prompt), Request(chain, seed, **request), watch)
        tracer.begin(generation, session)
        text = "".join(segment.text for segments in generation for segment in segments)
        tracer.end(generation)
    (answer,) = read(path).answers
    return Traced(text, generation, steps, answer)


def read(path: Path) -> Trace:
    """The trace in `path`, which is whole."""
    return read_trace(path, _fail)


def _fail(notice: str) -> None:
    raise AssertionError(notice)
