"""The loop: a line, what it asks for, what goes wrong with it, and the next line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from specdec_cli.chat import saved
from specdec_cli.chat.actions import COMMANDS, LeaveError, to_words
from specdec_cli.chat.chatting import Chat
from specdec_cli.chat.opening import Opening, begin, follow, save_caches
from specdec_cli.chat.reading import PipeReader, Reader, SilentKeys
from specdec_cli.chat.slash import Call, parse
from specdec_cli.conversation import Conversation
from specdec_cli.errors import EXIT_OK, SpecdecError
from specdec_cli.llama import library
from specdec_cli.question import read_grammar
from specdec_cli.status import StatusLine
from specdec_cli.telling import before_last_words, last_words, name_draft, name_weights, open_session
from specdec_cli.terminal import Terminal
from specdec_cli.tracing import open_tracer


def chat(opening: Opening, terminal: Terminal) -> int:
    """Talk until the lines end; the exit code.

    Raises:
        SpecdecError: the chat cannot begin.
        PipeClosedError: nobody reads the answers any more.
        KeyboardInterrupt: Ctrl-C while the models load, or with nobody at the keys.
    """
    path, wished = opening.session_file, opening.wished.seeded()
    wishes = wished.to_wishes(opening.logprobs)
    grammar = read_grammar(wishes, terminal.notice)
    kept = saved.load(path) if path is not None and saved.has_chat(path) else None
    status = StatusLine(terminal, hidden=opening.verbose)
    library.show_log(terminal.log if opening.verbose else None)
    with (
        open_tracer(opening.trace, status.notice) as tracer,
        SilentKeys(terminal) as keys,
        last_words(terminal, status),
        before_last_words(keys.restore),
        open_session(opening.pair, opening.settings, status) as session,
    ):
        status.close()
        conversation = Conversation(
            session, wishes, grammar, system=opening.system, notice=status.notice, watch=tracer.watch
        )
        talk = begin(opening, wished, conversation, session, terminal, status, keys, tracer)
        if path is not None:
            follow(talk, opening, path, kept)
        try:
            return _talk(talk, _open_reader(talk), opening.first)
        finally:
            _keep(talk)
            if opening.save_cache and talk.last is not None:
                save_caches(talk)


def _open_reader(talk: Chat) -> Reader:
    terminal = talk.terminal
    if not talk.by_hand:
        return PipeReader(terminal)
    from specdec_cli.chat.completing import LineCompleter
    from specdec_cli.chat.keys import KeyReader

    if not terminal.quiet:
        draft = name_draft(talk.session) if talk.session.pair.drafters else "none"
        greeting = f"target {name_weights(talk.session.target)} · draft {draft}\n/help lists commands, Ctrl-D ends"
        terminal.show_styled([(greeting, "dim")])
    return KeyReader(terminal, LineCompleter(COMMANDS, lambda: to_words(talk)))


def _talk(talk: Chat, reader: Reader, first: str | None) -> int:
    going = first is None or _attempt(talk, lambda: talk.say(first))
    while going:
        try:
            line = reader.read(talk.draft)
        except EOFError:
            going, line = False, ""
        except KeyboardInterrupt:
            if not talk.by_hand:
                raise
            talk.give_up()
            continue
        if going or not talk.by_hand:  # files that wait at the end of a pipe are the last message
            going = _attempt(talk, partial(_obey, talk, line)) and going
    return EXIT_OK if talk.by_hand else talk.code


def _obey(talk: Chat, line: str) -> None:
    called = parse(line, COMMANDS)
    if isinstance(called, Call):
        talk.revising = False
        called.command.act(talk, called.argument)
    else:
        talk.say(called)


def _attempt(talk: Chat, act: Callable[[], object]) -> bool:
    """Do what was asked for, and say what goes wrong with it; whether to go on."""
    talk.draft = ""
    try:
        act()
    except LeaveError:
        return False
    except SpecdecError as error:
        talk.complain(error)
    except KeyboardInterrupt:  # before an answer began
        if not talk.by_hand:
            raise
    _keep(talk)
    return True


def _keep(talk: Chat) -> None:
    try:
        talk.keep()
    except SpecdecError as error:
        talk.complain(error)
