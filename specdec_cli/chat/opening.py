"""How a chat begins: what was asked for, and what its models and its session file make of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from specdec_cli import memory
from specdec_cli.catalog import Pair
from specdec_cli.chat.chatting import Chat
from specdec_cli.chat.choices import Choice, Wished
from specdec_cli.chat.reading import SilentKeys
from specdec_cli.chat.saved import Saved
from specdec_cli.chat.thinking import find_tags
from specdec_cli.chat.view import ViewOptions
from specdec_cli.conversation import Conversation
from specdec_cli.errors import ModelError, UsageError
from specdec_cli.llama.chat_template import render_messages, template_of
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from specdec_cli.status import StatusLine
from specdec_cli.terminal import Terminal
from specdec_cli.tracing import Tracer


@dataclass(frozen=True, slots=True)
class Opening:
    """How a chat begins. `first` is a message to answer before any line is read.

    `session_file` is loaded if it exists, and follows along; its settings hold, but for those that are `given`.
    `save_cache` leaves the caches beside it. Rounds go to the file `trace`.
    """

    pair: Pair
    settings: ModelSettings
    choices: Sequence[Choice]
    wished: Wished
    given: Collection[str]
    view: ViewOptions
    system: str | None
    first: str | None
    session_file: Path | None
    save_cache: bool
    memory_file: Path | None
    remembers_questions: bool
    logprobs: int | None
    verbose: bool
    trace: Path | None = None


def begin(
    opening: Opening,
    wished: Wished,
    conversation: Conversation,
    session: Session,
    terminal: Terminal,
    status: StatusLine,
    keys: SilentKeys,
    tracer: Tracer,
) -> Chat:
    """A chat on what is loaded.

    Raises:
        UsageError: an option does not fit the model, or the memory cannot be read.
    """
    session.chain(conversation.wishes.chain)
    if opening.memory_file is not None:
        session.remembered = memory.load(opening.memory_file, session.fingerprint)
    talk = Chat(
        session,
        conversation,
        terminal,
        status,
        choices=opening.choices,
        wished=wished,
        view=opening.view,
        keys=keys,
        memory_file=opening.memory_file,
        remembers_questions=opening.remembers_questions,
        tracer=tracer,
    )
    _find_thoughts(talk, session)
    return talk


def _find_thoughts(talk: Chat, session: Session) -> None:
    talk.tags = find_tags(template_of(session.target))
    marks = [mark for tags in talk.tags for mark in (tags.opening, tags.closing)]
    talk.forgets_thoughts = session.tokenizer.reveal(marks)
    try:
        prompt = render_messages(session.target, session.tokenizer, [{"role": "user", "content": "x"}]).rstrip()
    except ModelError:  # it says so itself when something is asked
        prompt = ""
    talk.inside = next((tags for tags in talk.tags if prompt.endswith(tags.opening)), None)


def follow(talk: Chat, opening: Opening, path: Path, kept: Saved | None) -> None:
    """Go on from the session file `path`, which holds `kept`, and let it follow along.

    Raises:
        UsageError: a setting of it cannot be used.
    """
    if kept is not None:
        talk.take(kept, path, opening.wished, given=opening.given)
        if _cache_folder(path).is_dir():
            talk.session.load_caches(_cache_folder(path))
        if opening.system is not None:
            talk.conversation.set_system(opening.system)
    talk.keep_in(path)


def _cache_folder(path: Path) -> Path:
    return path.with_name(f"{path.name}.cache")


def save_caches(talk: Chat) -> None:
    """Leave the caches beside the session file."""
    if talk.kept_in is None:
        return
    folder = _cache_folder(talk.kept_in)
    try:
        folder.mkdir(exist_ok=True)
        talk.session.save_caches(folder)
    except OSError as error:
        talk.complain(UsageError(f"cannot make folder {folder}: {error.strerror or error}"))
    except UsageError as error:
        talk.complain(error)
