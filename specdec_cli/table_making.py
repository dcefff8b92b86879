"""What `specdec table build` does: read texts or prompts, load the target, learn, and write one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_cli.catalog import Pair
from specdec_cli.core.ngrams import NgramTable
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from specdec_cli.generation import Request
from specdec_cli.llama import library
from specdec_cli.ngram_file import read_ngrams, write_ngrams
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from specdec_cli.status import StatusLine
from specdec_cli.table_building import learn_answers, learn_text, within
from specdec_cli.telling import last_words, open_session
from specdec_cli.terminal import Terminal


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
    texts = [_read(each, terminal) for each in plan.files]
    prompts = [line for text in texts for line in text.splitlines() if line.strip()]
    if not prompts:
        raise UsageError("there is nothing to learn from", hint="give files with text")
    before, whose = read_ngrams(plan.output) if plan.extend else (None, None)
    status = StatusLine(terminal, hidden=verbose)
    library.show_log(terminal.log if verbose else None)
    with last_words(terminal, status), open_session(plan.pair, plan.settings, status) as session:
        if whose not in (None, session.fingerprint):
            raise UsageError(f"table {plan.output} is about another vocabulary than that of target {plan.pair.target}")
        learned, is_whole = _learn(before, texts, prompts, plan, session, status)
        status.close()
        if learned is not None:
            write_table(plan.output, learned, session.fingerprint, plan.max_bytes, terminal)
    return EXIT_OK if is_whole else EXIT_INTERRUPTED


def write_table(path: Path, table: NgramTable, fingerprint: bytes, most: int, terminal: Terminal) -> None:
    """Write `table` to `path`, in at most `most` bytes if leaving out what is rare can do that, and say what it is."""
    smaller = within(table, most, fingerprint)
    write_ngrams(path, smaller, fingerprint)
    terminal.notice(describe(path, smaller))


def describe(path: Path, table: NgramTable) -> str:
    """What a table holds, in one line."""
    kilobytes = path.stat().st_size / 1000
    return (
        f"{path}: {table.size:,} n-grams of up to {table.order} tokens, counted from {table.tokens:,.0f} tokens, "
        f"{kilobytes:,.0f} kB"
    )


def _learn(
    table: NgramTable | None, texts: list[str], prompts: list[str], plan: Plan, session: Session, status: StatusLine
) -> tuple[NgramTable | None, bool]:
    """The table, and whether all of it was learned."""
    if not plan.from_target:
        for text in texts:
            tokens = session.prompt_from_text(text)
            table = learn_text(table, tokens, plan.order, session.target.vocabulary_size)
        return table, True
    answered = 0

    def report(answers: int, tokens: int) -> None:
        nonlocal answered
        answered = answers
        status.show_loading(f"answered {answers} of {len(prompts)} prompts, {tokens:,} tokens")

    request = Request(session.chain(plan.chain), plan.seed, max_tokens=plan.max_tokens)
    table = learn_answers(table, session, prompts, request, plan.order, report)
    return table, answered == len(prompts)


def _read(name: str, terminal: Terminal) -> str:
    """The text of a file, or of standard input.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        data = terminal.stdin.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name holds a zero byte"
        raise UsageError(f"{name} cannot be read: {reason}") from None
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
