"""What `specdec distil generate` does: load the target, ask it, and let a file of answers grow."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from specdec_cli.catalog import Pair
from specdec_cli.distil.answers import AnswerFile
from specdec_cli.distil.generating import Asking, answer
from specdec_cli.distil.prompts import own_prompts, training_prompts
from specdec_cli.distil.pulse import Pulse
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from specdec_cli.generation import Request
from specdec_cli.llama import library
from specdec_cli.prompt import read_text
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from specdec_cli.status import StatusLine
from specdec_cli.telling import last_words, open_session
from specdec_cli.terminal import ONE_LINE, Terminal


@dataclass(frozen=True, slots=True)
class Plan:
    """Whom to ask what. The prompts are the lines of `files`, or without any those of the package.

    It ends when all are answered `repeat` times, or at `tokens` tokens of answers.
    """

    pair: Pair
    settings: ModelSettings
    output: Path
    files: tuple[str, ...]
    sequences: int
    repeat: int
    tokens: int | None
    max_tokens: int
    temperature: float | None
    seed: int


def ask(plan: Plan, terminal: Terminal, *, verbose: bool) -> int:
    """Ask until all is answered; the exit code. What is in the file already is not asked again.

    Raises:
        SpecdecError: the target, the prompts or the file cannot be used.
    """
    texts = [read_text(each, terminal) for each in plan.files]
    prompts = own_prompts(texts) if plan.files else training_prompts()
    if not prompts:
        raise UsageError("there is nothing to ask", hint="give files with prompts, one a line, or none for our own")
    status = StatusLine(terminal, hidden=verbose)
    library.show_log(terminal.log if verbose else None)
    with last_words(terminal, status), open_session(plan.pair, plan.settings, status) as session:
        file = AnswerFile(plan.output, session.fingerprint)
        tally = Tally(*file.resume())
        chain = session.chain({} if plan.temperature is None else {"temperature": plan.temperature})
        asking = Asking(prompts, Request(chain, plan.seed, max_tokens=plan.max_tokens), plan.repeat, plan.sequences)
        try:
            _grow(file, tally, asking, session, plan.tokens, status)
            code = EXIT_OK
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
    name = str(plan.output).translate(ONE_LINE)
    rest = "" if code == EXIT_OK else "; the same command goes on from there"
    terminal.notice(f"{name}: {len(tally.numbers):,} answers, {tally.tokens:,} tokens{rest}")
    return code


@dataclass(slots=True)
class Tally:
    """What a file holds: the numbers of its answers, and how many tokens these have."""

    numbers: set[int]
    tokens: int


def _grow(
    file: AnswerFile, tally: Tally, asking: Asking, session: Session, most: int | None, status: StatusLine
) -> None:
    started, before, pulse = time.monotonic(), tally.tokens, Pulse(status)
    with closing(answer(asking, session, frozenset(tally.numbers))) as answers:
        for found in answers:
            file.add(found)
            tally.numbers.add(found.number)
            tally.tokens += len(found.tokens) - found.start
            rate = (tally.tokens - before) / (time.monotonic() - started)
            done = f"{len(tally.numbers):,} of {asking.count:,} answers, {tally.tokens:,} tokens"
            pulse.show(f"{done}, {rate:,.0f} a second")
            if most is not None and tally.tokens >= most:
                return
