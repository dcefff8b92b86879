"""The regular expressions of JSON Schema as GBNF: what may stand between the quotes of a JSON string.

Characters that JSON escapes are written escaped; where a class holds control characters without a short
escape those are left out, so that everything that comes out is valid and matches.
"""

from __future__ import annotations

import re
from typing import Final

from specdec_cli.llama.json_rules import literal

_Ranges = list[tuple[int, int]]
"""Code points, first and last of each range."""

HIGHEST: Final = 0x10FFFF
CLASSES: Final[dict[str, _Ranges]] = {
    "d": [(0x30, 0x39)],
    "w": [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
    "s": [(0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x2028, 0x2029), (0xFEFF, 0xFEFF)],
}
CONTROLS: Final = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0}
LINE_ENDS: Final[_Ranges] = [(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]

UNESCAPED: Final = ((0x20, 0x21), (0x23, 0x5B), (0x5D, HIGHEST))
ESCAPES: Final = {8: r"\b", 9: r"\t", 10: r"\n", 12: r"\f", 13: r"\r", 34: r"\"", 92: r"\\"}

QUANTIFIER: Final = re.compile(r"([*+?]|\{(\d+)(?:,(\d*))?\})\??")
CODE_POINT: Final = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}")
GROUP: Final = re.compile(r"\((\?:|\?<\w+>|(?!\?))")


def pattern_rule(pattern: str) -> str:
    """The GBNF of the strings in which `pattern` is found; ^ and $ may stand at the ends of its alternatives.

    Raises:
        ValueError: it does not parse, or uses what a grammar cannot follow; its message says what.
    """
    reader = _Reader(pattern)
    rule = reader.alternatives(outermost=True)
    if reader.rest:
        raise ValueError("a bracket that nothing opened")
    return rule


class _Reader:
    """What is left of a pattern to read."""

    def __init__(self, pattern: str) -> None:
        self.rest = pattern

    def alternatives(self, *, outermost: bool = False) -> str:
        parts = [self._sequence(outermost)]
        while self._took("|"):
            parts.append(self._sequence(outermost))
        return f"({' | '.join(parts)})"

    def _sequence(self, outermost: bool) -> str:
        items = [] if not outermost or self._took("^") else ["character*"]
        ended = not outermost
        while self.rest and self.rest[0] not in "|)":
            if outermost and self._took("$"):
                ended = True
                break
            items.append(self._repeated())
        if not ended:
            items.append("character*")
        return " ".join(items) or '""'

    def _repeated(self) -> str:
        atom = self._atom()
        if quantifier := self._match(QUANTIFIER):
            least, most = quantifier[2], quantifier[3]
            if least and most and int(most) < int(least):
                raise ValueError(f"{quantifier[0]} repeats at least {least} and at most {most} times")
            return atom + quantifier[1]
        return atom

    def _atom(self) -> str:
        if self.rest[0] == "(":
            return self._group()
        if self.rest[0] in "*+?{":
            raise ValueError(f"nothing before {self.rest[0]}")
        if self.rest[0] in "^$":
            raise ValueError(f"{self.rest[0]} in the middle")
        if self._took("["):
            return _characters(self._class())
        if self._took("."):
            return _characters(_others(LINE_ENDS))
        return _characters(self._character())

    def _group(self) -> str:
        if not self._match(GROUP):
            raise ValueError(f"{self.rest[:3]}, which looks around")
        group = self.alternatives()
        if not self._took(")"):
            raise ValueError("a group that does not end")
        return group

    def _class(self) -> _Ranges:
        negated, ranges = self._took("^"), []
        while not self._took("]"):
            if not self.rest:
                raise ValueError("a class that does not end")
            found = self._character()
            if self.rest[:1] == "-" and self.rest[1:2] not in ("]", "") and len(found) == 1:
                self._took("-")
                found = [(found[0][0], self._character()[-1][1])]
                if found[0][1] < found[0][0]:
                    raise ValueError("a range that runs backwards")
            ranges += found
        return _others(ranges) if negated else ranges

    def _character(self) -> _Ranges:
        """One character, or the class that an escape stands for."""
        if not self._took("\\"):
            character, self.rest = self.rest[0], self.rest[1:]
            return [(ord(character), ord(character))]
        if point := self._match(CODE_POINT):
            code = int(point[1] or point[2] or point[3], 16)
            return [(code, code)]
        kind, self.rest = self.rest[:1], self.rest[1:]
        if kind.lower() in CLASSES:
            return CLASSES[kind] if kind.islower() else _others(CLASSES[kind.lower()])
        if (kind.isalnum() and kind not in CONTROLS) or not kind:
            raise ValueError(f"\\{kind}")
        code = CONTROLS.get(kind, ord(kind))
        return [(code, code)]

    def _took(self, text: str) -> bool:
        """Whether `text` came next; it is read then."""
        found = self.rest.startswith(text)
        self.rest = self.rest.removeprefix(text)
        return found

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self.rest)
        if match:
            self.rest = self.rest[match.end() :]
        return match


def _others(ranges: _Ranges) -> _Ranges:
    """All code points that `ranges` do not hold."""
    others, following = [], 0
    for first, last in sorted(ranges):
        if following < first:
            others.append((following, first - 1))
        following = max(following, last + 1)
    return [*others, (following, HIGHEST)] if following <= HIGHEST else others


def _characters(ranges: _Ranges) -> str:
    """The GBNF of one character in `ranges`, as JSON writes it."""
    plain = "".join(
        _spelled(max(first, low)) + (f"-{_spelled(min(last, high))}" if max(first, low) < min(last, high) else "")
        for first, last in ranges
        for low, high in UNESCAPED
        if max(first, low) <= min(last, high)
    )
    parts = [f"[{plain}]"] if plain else []
    parts += [literal(text) for code, text in ESCAPES.items() if any(first <= code <= last for first, last in ranges)]
    if not parts:
        raise ValueError("a character that JSON has no short escape for")
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"


def _spelled(code: int) -> str:
    """A code point inside a GBNF class."""
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\U{code:08X}"
