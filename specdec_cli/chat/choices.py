"""What /set changes and session files keep: options of answers by name, read as the command line reads them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final, Protocol, TypeVar, cast

from specdec_cli.errors import UsageError
from specdec_cli.question import Wishes

DEFAULT: Final = "default"
"""The word that takes a setting back."""


class Wished(Protocol):
    """Options of an answer, a dataclass with a field for each `Choice`."""

    def seeded(self) -> Wished:
        """The same with a seed: one that is drawn now, if none is given."""
        ...

    def to_wishes(self, logprobs: int | None = None) -> Wishes:
        """What they stand for; UsageError if they contradict each other."""
        ...


Options = TypeVar("Options", bound=Wished)


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting. `read` makes its value of words, or refuses them as the command line does; `words` complete it."""

    field: str
    read: Callable[[str], Any]
    default: Any
    words: tuple[str, ...] = ()
    many: bool = False

    @property
    def name(self) -> str:
        """As on the command line, without its dashes."""
        return self.field.replace("_", "-")


def to_name(typed: str) -> str:
    """A name as /set lists it, of one that is typed with other dashes or letters."""
    return typed.lower().lstrip("-").replace("_", "-")


def find(choices: Sequence[Choice], name: str) -> Choice:
    """The setting called `name`, with or without dashes before it and between its words.

    Raises:
        UsageError: there is none.
    """
    wanted = to_name(name)
    for each in choices:
        if each.name == wanted:
            return each
    near = get_close_matches(wanted, [each.name for each in choices], n=1, cutoff=0.5)
    raise UsageError(f"no setting {name}", hint=f"did you mean {near[0]}?" if near else "/set alone lists them")


def read_value(choice: Choice, text: str) -> Any:
    """The value that `text` stands for; several are parted as a shell parts them.

    Raises:
        UsageError: it stands for none.
    """
    if text == DEFAULT:
        return choice.default
    if not choice.many:
        return choice.read(text)
    try:
        return [choice.read(each) for each in shlex.split(text)]
    except ValueError as error:
        raise UsageError(f"/set {choice.name}: {str(error).lower()}", hint="quotes come in pairs") from None


def changed(wished: Options, choice: Choice, value: Any) -> Options:
    """`wished` with another value of `choice`."""
    return cast(Options, replace(cast(Any, wished), **{choice.field: value}))


def to_settings(choices: Sequence[Choice], wished: Wished) -> dict[str, Any]:
    """What differs from the defaults, by name, as a session file keeps it."""
    values = {each: getattr(wished, each.field) for each in choices}
    return {each.field: value for each, value in values.items() if value != each.default}


def restore(choices: Sequence[Choice], settings: Mapping[str, Any], wished: Options) -> Options:
    """`wished` with what a session file says over it.

    Raises:
        UsageError: a setting is unknown, or its value is none that it can have.
    """
    for name, value in settings.items():
        choice = find(choices, name)
        parts = value if isinstance(value, list) else [value]
        if choice.many is not isinstance(value, list) or not all(_is_plain(each) for each in parts):
            raise UsageError(f"setting {name} has no value that it can have")
        read = [choice.read(str(each)) for each in parts]
        wished = changed(wished, choice, read if choice.many else read[0])
    return wished


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
