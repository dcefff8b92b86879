"""Kinds of options: how a number, a choice or a flag is declared, read and refused."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import typer

from specdec_cli.errors import UsageError
from specdec_cli.limits import LARGEST_INT

LARGEST_SEED: Final = 2**53 - 1
"""Every JSON reader keeps whole numbers up to this one exact."""

LONGEST_WORK: Final = 24 * 3600
"""Seconds that a --time-limit may give to what always ends by the clock."""

Number = TypeVar("Number", int, float)


def option(*flags: str, panel: str, help: str, metavar: str = "", **more: Any) -> Any:
    """`metavar` stays empty for flags, which typer would describe as `<bool>`."""
    return typer.Option(*flags, rich_help_panel=panel, help=help, metavar=metavar, **more)


def number(kind: type[Number], option: str, low: Number, high: Number) -> Callable[[Any], Number]:
    """A parser of numbers in low..high: typer's own complaint would not repeat what was given."""

    def parse(given: Any) -> Number:
        try:
            value = kind(given)
        except ValueError:
            raise UsageError(f"{option} {given} is not a {'whole ' if kind is int else ''}number") from None
        if not low <= value <= high:
            raise UsageError(f"{option} {given} is not in {low}..{high}")
        return value

    return parse


def number_or_auto(option: str, low: int, high: int) -> Callable[[str], Any]:
    """A parser of whole numbers in low..high, and of `auto`."""
    parse = number(int, option, low, high)
    return lambda given: given if given == "auto" else parse(given)


def some_text(option: str, hint: str) -> Callable[[str], str]:
    """A parser of text that is not empty; `hint` says what an empty one would be good for."""

    def parse(given: str) -> str:
        if not given:
            raise UsageError(f"{option} needs some text", hint=hint)
        return given

    return parse


def whole(*flags: str, low: int, high: int = LARGEST_INT, panel: str, help: str) -> Any:
    """An option for a whole number."""
    return option(*flags, panel=panel, help=help, metavar="N", parser=number(int, flags[-1], low, high))


def choice(flag: str, choices: Sequence[str], *, panel: str, metavar: str, help: str) -> Any:
    """An option for one of a few words."""

    def parse(given: str) -> str:
        if given not in choices:
            raise UsageError(f"{flag} {given} is not one of {', '.join(choices)}")
        return given

    return option(flag, panel=panel, help=help, metavar=metavar, parser=parse, autocompletion=lambda: list(choices))
