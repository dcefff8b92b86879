"""What `specdec table build` does: read texts or prompts, load the target, learn, and write one file."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_cli.catalog import Pair
from specdec_cli.core.ngram_counts import merge
from specdec_cli.core.ngrams import NgramTable
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, SpecdecError, UsageError
from specdec_cli.files import locked, target_of
from specdec_cli.generation import Request
from specdec_cli.llama import library
from specdec_cli.ngram_file import read_ngrams, within, write_ngrams
from specdec_cli.prompt import read_text
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from specdec_cli.status import StatusLine
from specdec_cli.table_learning import Lesson, learn_answers, learn_text
from specdec_cli.telling import last_words, open_session
from specdec_cli.terminal import ONE_LINE, Terminal


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be learned, and where it goes. `chain` is what the user says of sampling, for answers."""

    pair: Pair
    settings: ModelSettings
    files: tuple[str, ...]
    output: Path
    from_target: bool
    extend: bool
    order: int
    max_bytes: int
    max_tokens: int
    chain: Mapping[str, Any]
    seed: int


def make_table(plan: Plan, terminal: Terminal, *, verbose: bool) -> int:
    """Learn and write; the exit code.

    Raises:
        SpecdecError: a file cannot be read or written, holds nothing, or the target cannot be used.
    """
    check_output(plan.output)
    texts = [read_text(each, terminal) for each in plan.files]
    if not any(text.strip() for text in texts):
        raise UsageError("there is nothing to learn from", hint="give files with text")
    whose = read_ngrams(plan.output)[1] if plan.extend else None
    status = StatusLine(terminal, hidden=verbose)
    library.show_log(terminal.log if verbose else None)
    with last_words(terminal, status), open_session(plan.pair, plan.settings, status) as session:
        if whose not in (None, session.fingerprint):
            raise UsageError(f"table {plan.output} is about another vocabulary than that of target {plan.pair.target}")
        learned, is_whole = _learn(texts, plan, session, status)
        status.close()
        if learned is not None:
            with _uninterrupted():
                write_table(plan.output, learned, session.fingerprint, plan.max_bytes, terminal, extend=plan.extend)
    return EXIT_OK if is_whole else EXIT_INTERRUPTED


def check_output(path: Path) -> None:
    """Refuse a place for a table where something else would be lost, before anything takes time.

    Raises:
        UsageError: it is no file that can be made, or holds something else than a table.
    """
    try:
        is_there = target_of(path).exists()
    except OSError as error:
        raise UsageError(f"table {path} cannot be written: {error.strerror}", hint="name a file with -o") from None
    if is_there:
        try:
            read_ngrams(path)
        except UsageError:
            raise UsageError(
                f"{path} is there and is not a table of specdec, or is damaged", hint="name another file for -o"
            ) from None


def write_table(
    path: Path, table: NgramTable, fingerprint: bytes, most: int, terminal: Terminal, *, extend: bool = False
) -> None:
    """Write `table` to `path`, in at most `most` bytes if leaving out what is rare can do that, and say what it is.

    `extend` adds it to what is there by now: two that extend one table at once lose nothing.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        with locked(path):
            whole = merge(read_ngrams(path)[0], table) if extend else table
            smaller = within(whole, most, fingerprint)
            write_ngrams(path, smaller, fingerprint)
    except OSError as error:
        raise UsageError(f"table {path} cannot be written: {error.strerror}") from None
    terminal.notice(describe(path, smaller))


def describe(path: Path, table: NgramTable) -> str:
    """What a table holds, in one line."""
    name, kilobytes = str(path).translate(ONE_LINE), target_of(path).stat().st_size / 1000
    return (
        f"{name}: {table.size:,} n-grams of up to {table.order} tokens, counted from {table.tokens:,.0f} tokens, "
        f"{kilobytes:,.0f} kB"
    )


def _learn(texts: Sequence[str], plan: Plan, session: Session, status: StatusLine) -> tuple[NgramTable | None, bool]:
    """The table, and whether all of it was learned."""
    if plan.from_target:
        return _learn_answers(texts, plan, session, status)
    learned: NgramTable | None = None
    for tokens in filter(None, map(session.prompt_from_text, texts)):
        table = learn_text(tokens, plan.order, session.target.vocabulary_size)
        learned = table if learned is None else merge(learned, table)
    return learned, True


def _learn_answers(
    texts: Sequence[str], plan: Plan, session: Session, status: StatusLine
) -> tuple[NgramTable | None, bool]:
    prompts = [line for text in texts for line in text.splitlines() if line.strip()]
    request = Request(session.chain(plan.chain), plan.seed, max_tokens=plan.max_tokens)
    lesson = Lesson(session, prompts, request, plan.order)
    is_whole = learn_answers(lesson, status.show_loading)
    if not lesson.answers and lesson.left_out:
        raise _nothing_answered(next(iter(lesson.left_out.values())))
    for number, error in lesson.left_out.items():
        status.notice(f"prompt {number} is left out: {error.message}")
    with _uninterrupted():
        return lesson.table(), is_whole


def _nothing_answered(error: SpecdecError) -> SpecdecError:
    return type(error)(f"no prompt could be asked: {error.message}", hint=error.hint)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore Ctrl-C meanwhile: what took an hour to learn is counted and written within seconds."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
