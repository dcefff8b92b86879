"""What `specdec distil generate` does: load the target, ask it, and let a file of answers grow."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from specdec_cli.catalog import Pair
from specdec_cli.distil.answers import AnswerFile
from specdec_cli.distil.generating import Asking, answer
from specdec_cli.distil.places import checked
from specdec_cli.distil.prompts import own_prompts, training_prompts
from specdec_cli.distil.pulse import Pulse
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from specdec_cli.files import locked
from specdec_cli.generation import Request
from specdec_cli.llama import library
from specdec_cli.prompt import read_text
from specdec_cli.sampling_settings import to_settings
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
    checked("answers", plan.output)
    status = StatusLine(terminal, hidden=verbose)
    library.show_log(terminal.log if verbose else None)
    lengths: dict[int, int] = {}
    code = EXIT_OK
    with last_words(terminal, status), open_session(plan.pair, plan.settings, status) as session, locked(plan.output):
        file = AnswerFile(plan.output, session.fingerprint)
        asking = _to_asking(plan, prompts, session)
        lengths |= file.resume(_digest(asking))
        status.show_loading(f"reading {len(prompts):,} prompts")
        try:
            _grow(file, lengths, asking, session, plan.tokens, status)
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
    name = str(plan.output).translate(ONE_LINE)
    rest = "" if code == EXIT_OK else "; the same command goes on from there"
    terminal.notice(f"{name}: {len(lengths):,} answers, {sum(lengths.values()):,} tokens{rest}")
    return code


def _to_asking(plan: Plan, prompts: Sequence[str], session: Session) -> Asking:
    chain = session.chain({} if plan.temperature is None else {"temperature": plan.temperature})
    request = Request(chain, plan.seed, max_tokens=plan.max_tokens)
    return Asking(prompts, request, plan.max_tokens, plan.repeat, plan.sequences)


def _digest(asking: Asking) -> str:
    """Of all that decides what an answer is, but for the target, of which its vocabulary must do."""
    request = asking.request
    decides = [asking.prompts, asking.longest, request.seed, to_settings(request.chain)]
    return blake2b(json.dumps(decides).encode(), digest_size=16).hexdigest()


def _grow(
    file: AnswerFile, lengths: dict[int, int], asking: Asking, session: Session, most: int | None, status: StatusLine
) -> None:
    """Add answers to `file` and `lengths` until all are there, or `most` tokens."""
    started, pulse = time.monotonic(), Pulse(status)
    before = tokens = sum(lengths.values())
    with closing(answer(asking, session, frozenset(lengths))) as answers:
        while most is None or tokens < most:
            found = next(answers, None)
            if found is None:
                return
            file.add(found)
            lengths[found.number] = found.length
            tokens += found.length
            rate = (tokens - before) / (time.monotonic() - started)
            pulse.show(f"{len(lengths):,} of {asking.count:,} answers, {tokens:,} tokens, {rate:,.0f} a second")
