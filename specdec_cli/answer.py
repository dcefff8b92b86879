"""One question, answered on a terminal, into a pipe or as JSON."""

from __future__ import annotations

import time

from specdec_cli import memory
from specdec_cli.answer_json import to_json
from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK
from specdec_cli.llama import library
from specdec_cli.question import Question, read_grammar, to_request, to_tokens
from specdec_cli.status import StatusLine
from specdec_cli.telling import OutputOptions, last_words, open_session, stream, summarise
from specdec_cli.terminal import Terminal
from specdec_cli.tracing import open_tracer


def answer(question: Question, terminal: Terminal, output: OutputOptions) -> int:
    """Load the pair, answer, and report; the exit code.

    Raises:
        SpecdecError: the pair or the prompt cannot be used.
        PipeClosedError: nobody reads the answer any more.
    """
    started, wishes = time.perf_counter(), question.wishes
    grammar = read_grammar(wishes, terminal.notice)
    status = StatusLine(terminal, hidden=output.verbose)
    library.show_log(terminal.log if output.verbose else None)

    def show(segments: list[Segment[Kind]]) -> None:
        if not output.json:
            status.write(segments, by_kind=output.color_tokens)

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
        text = stream(generation, status, show)
        status.close(interrupted=generation.finish_reason == "interrupted")
        generation.timing.total = time.perf_counter() - started
        tracer.end(generation)
        if question.memory is not None:
            asked = prompt if question.remembers_prompt else []
            memory.remember(question.memory, session.fingerprint, [*asked, *generation.tokens])
        if output.json:
            terminal.write_text(to_json(text, generation, session, wishes, system=question.system, raw=question.raw))
        if output.stats if output.stats is not None else terminal.shows_messages and not terminal.quiet:
            summarise(generation, session, wishes, terminal)
    return EXIT_INTERRUPTED if generation.finish_reason == "interrupted" else EXIT_OK
