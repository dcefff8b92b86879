"""The fields of one record, each taken with a check: a file from elsewhere may hold anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

Value = TypeVar("Value")

LARGEST: Final = 2.0**63
"""Beyond any number that a trace has a use for."""
MISSING: Final = object()


class DamageError(Exception):
    """What is wrong with a record, in words."""


class Fields:
    """The fields of the object `value`. Other ones than those that are taken may be there, and mean nothing.

    Raises, as each of the methods does:
        DamageError: it is no object, or a field is missing or not what it should be.
    """

    def __init__(self, value: Any, name: str) -> None:
        if not isinstance(value, dict):
            raise DamageError(f"{name} is no object")
        self._values: Mapping[str, Any] = value

    def whole(self, name: str, low: int = 0, high: int = 2**53) -> int:
        """A whole number in low..high."""
        return to_whole(self.given(name), name, low, high)

    def real(self, name: str, low: float = 0.0, high: float = LARGEST) -> float:
        """A number in low..high."""
        return to_real(self.given(name), name, low, high)

    def chance(self, name: str) -> float:
        """A probability."""
        return self.real(name, 0.0, 1.0)

    def text(self, name: str) -> str:
        """A string."""
        return to_text(self.given(name), name)

    def flag(self, name: str) -> bool:
        """true or false."""
        value = self.given(name)
        if not isinstance(value, bool):
            raise DamageError(f'"{name}" is neither true nor false')
        return value

    def word(self, name: str, words: tuple[Value, ...]) -> Value:
        """One of `words`."""
        value = self.given(name)
        found = next((word for word in words if type(value) is str and word == value), None)
        if found is None:
            raise DamageError(f'"{name}" is none of {", ".join(map(str, words))}')
        return found

    def table(self, name: str) -> Mapping[str, Any]:
        """An object of whatever."""
        value = self.given(name)
        if not isinstance(value, dict):
            raise DamageError(f'"{name}" is no object')
        return value

    def inner(self, name: str) -> Fields:
        """An object."""
        return Fields(self.given(name), f'"{name}"')

    def each(self, name: str, read: Callable[[Any], Value]) -> tuple[Value, ...]:
        """A list, each item of which is `read`."""
        return tuple(read(item) for item in to_list(self.given(name), name))

    def has(self, name: str) -> bool:
        """Whether there is something, null not counted."""
        return self._values.get(name) is not None

    def maybe(self, name: str, take: Callable[[str], Value]) -> Value | None:
        """What `take` takes, or None for a null. It must be there."""
        return None if self.given(name) is None else take(name)

    def given(self, name: str) -> Any:
        """Whatever is there."""
        value = self._values.get(name, MISSING)
        if value is MISSING:
            raise DamageError(f'it has no "{name}"')
        return value


def to_whole(value: Any, name: str, low: int, high: int) -> int:
    """`value` as a whole number in low..high; raises as `Fields`."""
    if type(value) is not int or not low <= value <= high:
        raise DamageError(f'"{name}" is no whole number in {low}..{high}')
    return value


def to_real(value: Any, name: str, low: float, high: float) -> float:
    """`value` as a number in low..high; raises as `Fields`."""
    if type(value) not in (int, float) or not low <= value <= high:  # NaN is in no range
        raise DamageError(f'"{name}" is no number in {low:g}..{high:g}')
    return float(value)


def to_text(value: Any, name: str) -> str:
    """`value` as a string; raises as `Fields`."""
    if not isinstance(value, str):
        raise DamageError(f'"{name}" is no text')
    return value


def to_list(value: Any, name: str, length: int | None = None) -> list[Any]:
    """`value` as a list, of `length` items if that is given; raises as `Fields`."""
    if not isinstance(value, list) or length not in (None, len(value)):
        raise DamageError(f'"{name}" is no list{"" if length is None else f" of {length}"}')
    return value
