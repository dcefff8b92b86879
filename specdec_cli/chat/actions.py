"""What each command does, and the one table of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from specdec_cli.chat import saved, show
from specdec_cli.chat.chatting import Chat
from specdec_cli.chat.choices import changed, find, read_value, to_name
from specdec_cli.chat.editor import edit_text, find_editor
from specdec_cli.chat.slash import Command, to_path
from specdec_cli.errors import UsageError
from specdec_cli.generation import Generation
from specdec_cli.sampling_settings import to_settings
from specdec_cli.telling import summarise
from specdec_cli.terminal import ONE_LINE

SWITCH: Final = {"on": True, "off": False}
VIEW: Final = {"color-tokens": "color_tokens", "think": "thoughts", "stats": "stats"}
"""Settings of what is shown, and their fields."""
LENGTH: Final = "draft-tokens"
EXCERPT: Final = 60


class LeaveError(Exception):
    """The user has said enough."""


def help_(chat: Chat, _: str) -> None:
    """/help."""
    chat.terminal.show_styled(show.to_help(COMMANDS))


def leave(_: Chat, __: str) -> None:
    """/exit."""
    raise LeaveError


def reset(chat: Chat, _: str) -> None:
    """/reset."""
    chat.conversation.reset()
    chat.drop_material()
    chat.terminal.notice("all is forgotten but the system message and the settings")


def regenerate(chat: Chat, _: str) -> None:
    """/regen."""
    chat.answer_again()


def undo(chat: Chat, _: str) -> None:
    """/undo."""
    question = chat.conversation.undo()
    if question is None:
        raise UsageError("there is nothing to take back", hint="/undo takes back a question and its answer")
    chat.terminal.notice(f"taken back: {_excerpt(question)}")


def edit(chat: Chat, _: str) -> None:
    """/edit."""
    if not chat.by_hand:
        raise UsageError("/edit needs a person at the keys", hint="/undo, then ask again")
    questions = [each["content"] for each in chat.conversation.messages if each["role"] == "user"]
    editor = find_editor(chat.terminal.environment)
    if editor:
        with chat.keys.lifted():
            text = edit_text(editor, questions[-1] if questions else "")
        if not text.strip() or text == (questions[-1] if questions else ""):
            chat.terminal.notice("nothing has changed, so nothing is asked")
            return
        chat.draft, chat.revising = text, bool(questions)
        chat.say(text)
    elif questions:
        chat.draft, chat.revising = questions[-1], True
        chat.terminal.notice("Enter asks this in place of the last question; VISUAL or EDITOR names an editor")
    else:
        raise UsageError("nothing has been asked yet", hint="VISUAL or EDITOR names an editor to write in")


def system(chat: Chat, text: str) -> None:
    """/system TEXT, or none, or nothing to see what it is."""
    if text:
        chat.conversation.set_system(None if text == "none" else text)
        if not chat.by_hand:
            return
    now = [each["content"] for each in chat.conversation.messages if each["role"] == "system"]
    chat.terminal.notice(f"the system message: {now[0]}" if now else "there is no system message")


def read(chat: Chat, argument: str) -> None:
    """/read FILE."""
    chat.add_material(to_path(argument))


def set_(chat: Chat, argument: str) -> None:
    """/set OPTION VALUE, or nothing to see all of them."""
    name, _, value = argument.partition(" ")
    name, value = to_name(name), value.strip()
    if value:
        _change(chat, name, value)
    if chat.by_hand or not value:
        values = settings(chat)
        if name and name not in values:
            find(chat.choices, name)
        chat.terminal.show_styled(show.to_settings({name: values[name]} if name else values))


def _change(chat: Chat, name: str, value: str) -> None:
    if name in VIEW:
        chat.view = replace(chat.view, **{VIEW[name]: _switch(name, value)})
    elif name == "draft":
        set_draft(chat, on=_switch(name, value))
    else:
        choice = find(chat.choices, name)
        chat.wish(changed(chat.wished, choice, read_value(choice, value)))


def _switch(name: str, value: str) -> bool:
    if value not in SWITCH:
        raise UsageError(f"/set {name} {value} is not one of on, off")
    return SWITCH[value]


def set_draft(chat: Chat, *, on: bool) -> None:
    """Draft as before it was switched off, or not at all."""
    length = find(chat.choices, LENGTH)
    now, own = getattr(chat.wished, length.field), chat.session.defaults[length.field]
    if on is ((own if now is None else now) == 0):
        before = "auto" if chat.draft_tokens is None and own == 0 else chat.draft_tokens
        chat.wish(changed(chat.wished, length, before if on else 0))
        chat.draft_tokens = None if on else now


def settings(chat: Chat) -> dict[str, Any]:
    """All that /set knows, by name, with the values that hold."""
    chain = to_settings(chat.session.chain(chat.conversation.wishes.chain))
    said = {each: getattr(chat.wished, each.field) for each in chat.choices}
    held = chain | chat.session.defaults
    values = {each.name: held.get(each.field) if value is None else value for each, value in said.items()}
    values["draft"] = values[LENGTH] != 0 and bool(chat.session.pair.drafters)
    return values | {name: getattr(chat.view, field) for name, field in VIEW.items()}


def to_words(chat: Chat) -> dict[str, tuple[str, ...]]:
    """All that /set knows, by name, with the words that each may have."""
    switches = dict.fromkeys(("draft", *VIEW), tuple(SWITCH))
    return {each.name: each.words for each in chat.choices} | switches


def stats(chat: Chat, _: str) -> None:
    """/stats."""
    summarise(_last(chat), chat.session, chat.conversation.wishes, chat.terminal)
    chat.terminal.show_styled(show.to_session(chat.totals, chat.times, chat.answers))


def draft(chat: Chat, _: str) -> None:
    """/draft."""
    styled = chat.terminal.moves_cursor
    chat.terminal.show_styled(show.to_draft(_last(chat).rounds, chat.session.texts.pieces, styled=styled))


def save(chat: Chat, argument: str) -> None:
    """/save FILE."""
    path = to_path(argument)
    saved.save(path, chat.to_saved())
    chat.terminal.notice(f"saved in {path}")


def load(chat: Chat, argument: str) -> None:
    """/load FILE."""
    path = to_path(argument)
    chat.take(saved.load(path), path, type(chat.wished)())
    count = sum(each["role"] == "user" for each in chat.conversation.messages)
    follows = ""
    if chat.kept_in is not None:
        chat.keep_in(path)
        follows = ", which follows along from here on"
    chat.terminal.notice(f"{count} question{'' if count == 1 else 's'} and the settings of {path}{follows}")


def _last(chat: Chat) -> Generation:
    if chat.last is None:
        raise UsageError("nothing has been answered yet", hint="ask something first")
    return chat.last


def _excerpt(text: str) -> str:
    line = " ".join(text.translate(ONE_LINE).split())
    return line if len(line) <= EXCERPT else f"{line[: EXCERPT - 1]}…"


COMMANDS: Final = (
    Command("help", "", "List the commands.", help_),
    Command("exit", "", "End the chat, as Ctrl-D does.", leave),
    Command("reset", "", "Forget all but the system message.", reset),
    Command("regen", "", "Answer the last question again.", regenerate),
    Command("undo", "", "Take back the last question and its answer.", undo),
    Command("edit", "", "Change the last question, in $VISUAL or $EDITOR if set.", edit),
    Command("system", "[TEXT]", "Set the system message; none drops it. Alone: show it.", system, lines=True),
    Command("read", "FILE", "Put the text of a file before the next message.", read),
    Command("set", "[OPTION VALUE]", "Change how answers are made. Alone: show all settings.", set_),
    Command("stats", "", "Numbers of the last answer and of all of them.", stats),
    Command("draft", "", "Show what was guessed and rejected in the last answer.", draft),
    Command("save", "FILE", "Keep the conversation and its settings in a file.", save),
    Command("load", "FILE", "Go on with a conversation that was saved.", load),
)
