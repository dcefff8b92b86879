"""GBNF rules for JSON itself, and for the parts of it that can be spelled without a schema."""

from __future__ import annotations

from typing import Final

RULES: Final = r"""
space ::= (" " | "\n" [ \t]{0,20})?
comma ::= "," space
colon ::= ":" space
value ::= object | array | string | number | boolean | null
object ::= "{" space (member (comma member)* space)? "}"
member ::= string colon value
array ::= "[" space (value (comma value)* space)? "]"
string ::= "\"" character* "\""
character ::= [^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" ([0-9abcefABCEF] hex | [dD] [0-7]) hex hex)
hex ::= [0-9a-fA-F]
number ::= "-"? unsigned
unsigned ::= whole ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?
integer ::= "-"? whole
whole ::= "0" | [1-9] [0-9]{0,15}
boolean ::= "true" | "false"
null ::= "null"
date ::= [0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01])
time ::= clock ":" [0-5] [0-9] ("." [0-9]{1,9})? ("Z" | [-+] clock)
clock ::= ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9]
uuid ::= hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12}
"""
"""A `character` is one of JSON's, escaped or not, so that counting them counts what they stand for.

Blanks are optional and short: a model cannot get lost in them.
"""

FORMATS: Final = {"date": "date", "time": "time", "date-time": 'date "T" time', "uuid": "uuid"}
"""Formats of strings that are kept; JSON Schema takes all others as remarks."""

LONGEST_INTEGER: Final = 10**16 - 1
"""The bound where a schema gives none: up to about here doubles hold every integer."""


def literal(text: str) -> str:
    """The GBNF terminal of exactly `text`."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def quoted(inside: str) -> str:
    """The rule of a JSON string around the rule of what it says."""
    return f'"\\"" {inside} "\\""'


def integers(least: int | None, most: int | None) -> str:
    """The GBNF alternatives of the integers `least`..`most`; None for no bound of the schema's."""
    furthest = max(LONGEST_INTEGER, *(10 * abs(bound) for bound in (least, most) if bound is not None))
    least = -furthest if least is None else least
    most = furthest if most is None else most
    parts = _wholes(max(least, 0), most)
    if least < 0:
        parts += [f'"-" {part}' for part in _wholes(max(1, -most), -least)]
    return " | ".join(parts)


def _wholes(least: int, most: int) -> list[str]:
    """Alternatives of the integers `least`..`most`, both at least 0: one or more for each number of digits."""
    parts = []
    for digits in range(len(str(least)), len(str(most)) + 1):
        low, high = max(least, 10 ** (digits - 1) if digits > 1 else 0), min(most, 10**digits - 1)
        if low <= high:
            parts += _equally_long(str(low), str(high))
    return parts


def _equally_long(low: str, high: str) -> list[str]:
    """Alternatives of the digits `low`..`high`, which are equally many."""
    if not low:
        return [""]
    first, last, rest = int(low[0]), int(high[0]), len(low) - 1
    if first == last:
        return [f"[{first}] {part}".rstrip() for part in _equally_long(low[1:], high[1:])]
    parts = []
    if low[1:].strip("0"):
        parts += [f"[{first}] {part}" for part in _equally_long(low[1:], "9" * rest)]
        first += 1
    highest = []
    if high[1:].strip("9"):
        highest = [f"[{last}] {part}" for part in _equally_long("0" * rest, high[1:])]
        last -= 1
    if first <= last:
        parts.append(f"[{first}-{last}]" + (f" [0-9]{{{rest}}}" if rest else ""))
    return parts + highest
