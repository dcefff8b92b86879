"""What an answer in the making shows: its text on stdout, and on stderr what takes a while and how it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from specdec_cli.advice import advise
from specdec_cli.catalog import NgramFile, Pair, PredictedText, Source
from specdec_cli.core.draft_length import LONGEST
from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_MODEL
from specdec_cli.generation import Generation
from specdec_cli.llama import library
from specdec_cli.llama.losses import explain_loss
from specdec_cli.llama.weights import Weights
from specdec_cli.llama.workers import given_up
from specdec_cli.question import Wishes
from specdec_cli.render import to_progress, to_status, to_summary
from specdec_cli.session import Session
from specdec_cli.settings import Listener, ModelSettings
from specdec_cli.status import StatusLine
from specdec_cli.terminal import Terminal


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What is shown: `stats` None is a summary if stderr is a terminal. Rounds go to the file `trace`."""

    json: bool
    stats: bool | None
    color_tokens: bool
    verbose: bool
    trace: Path | None = None


_unfinished: list[Callable[[], object]] = []


@contextmanager
def before_last_words(act: Callable[[], object]) -> Iterator[None]:
    """If C code gives up inside, do this first: bring what is half told to its end. It may run in any thread."""
    _unfinished.append(act)
    try:
        yield
    finally:
        _unfinished.remove(act)


@contextmanager
def last_words(terminal: Terminal, status: StatusLine) -> Iterator[None]:
    """If C code gives up inside, say so in one line, which names the worker if one is lost; the process ends."""

    def speak(message: str) -> int:
        for act in [status.close, *_unfinished][::-1]:
            with suppress(Exception):  # nobody reads it any more, or the disk is full: the last words still count
                act()
        said = f"llama.cpp stopped: {message}", "--verbose shows its whole log"
        terminal.error(*(explain_loss(message) or said))
        return EXIT_INTERRUPTED if given_up() else EXIT_MODEL

    library.on_abort(speak)
    try:
        yield
    finally:
        status.close()
        library.on_abort(None)
        library.show_log(None)


def open_session(pair: Pair, settings: ModelSettings, status: StatusLine) -> Session:
    """Load `pair`, with its progress and notices on `status`; see `Session`."""

    def progress(task: str, share: float | None) -> None:
        status.show_loading(to_progress(task, share))

    return Session(pair, settings, Listener(progress, status.notice))


def stream(generation: Generation, status: StatusLine, show: Callable[[list[Segment[Kind]]], object]) -> str:
    """Hand the answer to `show` as it comes, with the live line behind it; the whole text."""
    parts: list[str] = []
    status.show_loading(f"reading {generation.prompt_tokens} tokens")
    for segments in generation:
        parts += [segment.text for segment in segments]
        if segments:
            show(segments)
        if status.visible:
            status.show(to_status(generation.counters, generation.timing, generation.draft_tokens))
    return "".join(parts)


def summarise(generation: Generation, session: Session, wishes: Wishes, terminal: Terminal) -> None:
    """Say how the answer went, and why drafting does not pay, if it does not."""
    summary = to_summary(
        generation.counters,
        generation.timing,
        reason=generation.finish_reason,
        seed=generation.request.seed,
        target=name_weights(session.target),
        draft=name_draft(session) if generation.draft_tokens else None,
        brought={name: value for name, value in session.brought.items() if name not in wishes.chain},
    )
    terminal.show(summary)
    if (advice := _advice(generation, session)) is not None:
        terminal.notice(advice)


def name_draft(session: Session) -> str:
    """Who drafts, and where."""
    return ", ".join(_name(each, session) for each in session.pair.drafters)


def name_weights(weights: Weights) -> str:
    """What was loaded, and where it runs."""
    return f"{weights.path.name} on {weights.backend}"


def _advice(generation: Generation, session: Session) -> str | None:
    """Why drafting does not pay, if it does not and the costs are known."""
    costs = session.known_costs() if generation.draft_tokens else None
    if costs is None:
        return None
    counters, source = generation.counters, ModelDrafter.name if session.draft else LookupDrafter.name
    if counters.by_source:
        source = max(counters.by_source, key=lambda name: counters.by_source[name][0])
    return advise(counters, costs, source, generation.draft_tokens, LONGEST)


def _name(source: Source, session: Session) -> str:
    if isinstance(source, PredictedText):
        return f"text {source.path.name}"
    if isinstance(source, NgramFile):
        return f"table {source.path.name}"
    return "lookup" if source == "lookup" or session.draft is None else name_weights(session.draft)
