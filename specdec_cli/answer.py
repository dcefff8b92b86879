"""One question, answered on a terminal, into a pipe or as JSON."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from specdec_cli import memory
from specdec_cli.answer_json import to_json
from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, ModelError
from specdec_cli.generation import Generation
from specdec_cli.llama import library
from specdec_cli.question import Question, read_grammar, to_request, to_tokens
from specdec_cli.session import Session
from specdec_cli.status import StatusLine
from specdec_cli.telling import OutputOptions, before_last_words, last_words, open_session, stream, summarise
from specdec_cli.terminal import Terminal
from specdec_cli.tracing import Tracer, open_tracer


def answer(question: Question, terminal: Terminal, output: OutputOptions) -> int:
    """Load the pair, answer, and report; the exit code.

    Raises:
        SpecdecError: the pair or the prompt cannot be used, or the engine failed.
        PipeClosedError: nobody reads the answer any more.
    """
    started, wishes = time.perf_counter(), question.wishes
    grammar = read_grammar(wishes, terminal.notice)
    status = StatusLine(terminal, hidden=output.verbose)
    library.show_log(terminal.log if output.verbose else None)
    with (
        open_tracer(output.trace, status.notice) as tracer,
        last_words(terminal, status),
        open_session(question.pair, question.settings, status) as session,
    ):
        if question.memory is not None:
            session.remembered = memory.load(question.memory, session.fingerprint)
        prompt = to_tokens(question, session)
        generation = session.generate(prompt, to_request(wishes, session, grammar), tracer.watch)
        tracer.begin(generation, session)
        answering = _Answering(question, output, terminal, status, tracer, session, prompt, generation, started)
        answering.run()
        if output.stats if output.stats is not None else terminal.shows_messages and not terminal.quiet:
            summarise(generation, session, wishes, terminal)
    return EXIT_INTERRUPTED if generation.finish_reason == "interrupted" else EXIT_OK


@dataclass(frozen=True, slots=True)
class _Answering:
    """An answer in the making, and all that is told and kept of it when it ends, in whatever way."""

    question: Question
    output: OutputOptions
    terminal: Terminal
    status: StatusLine
    tracer: Tracer
    session: Session
    prompt: Sequence[int]
    generation: Generation
    started: float

    def run(self) -> None:
        try:
            with before_last_words(self._break_off):
                stream(self.generation, self.status, self._show)
        except ModelError:
            self._break_off()
            raise
        self._finish()

    def _show(self, segments: list[Segment[Kind]]) -> None:
        if not self.output.json:
            self.status.write(segments, by_kind=self.output.color_tokens)

    def _break_off(self) -> None:
        """The engine failed: what there is counts."""
        self._show(self.generation.break_off())
        self._finish()

    def _finish(self) -> None:
        question, generation, session = self.question, self.generation, self.session
        self.status.close(interrupted=generation.finish_reason == "interrupted")
        generation.timing.total = time.perf_counter() - self.started
        self.tracer.end(generation)
        if self.output.json:
            text, system = generation.text, question.system
            line = to_json(text, generation, session, question.wishes, system=system, raw=question.raw)
            self.terminal.write_text(line)
        if question.memory is not None:
            asked = self.prompt if question.remembers_prompt else []
            memory.remember(question.memory, session.fingerprint, [*asked, *generation.tokens])
