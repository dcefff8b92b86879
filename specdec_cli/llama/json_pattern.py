"""The pattern of a JSON schema: from a regular expression to a grammar of the strings that it finds, as JSON."""

from __future__ import annotations

import json
import re
import warnings
from functools import cache
from typing import Final

UNESCAPED: Final = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E), (0x80, 0xD7FF), (0xE000, 0x10FFFF))
"""All but controls, quotation mark, backslash and halves of surrogate pairs."""

PIECE: Final = re.compile(
    r"""(?P<group>\((?!\?)|\(\?:|\)|\|)
      | (?P<times>[*+?]|\{\d+(?:,\d*)?\})\??
      | (?P<end>[\^$])
      | (?P<character>\\(?:[dDwWsSnrtfv0]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[^A-Za-z0-9])|\[(?:\\.|[^\]\\])+\]|[^\\[({])
      | (?P<other>\\.|\(\?..?|.)""",
    re.VERBOSE | re.DOTALL,
)


def pattern_to_grammar(pattern: str, character: str) -> str:
    """The GBNF of the strings in which `pattern` is found; `character` is the rule of any character in a string."""
    pieces = list(PIECE.finditer(pattern))
    begins, ends = pieces[:1] and pieces[0][0] == "^", pieces[1:] and pieces[-1][0] == "$"
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of brackets inside brackets
        re.compile(pattern)
        told = [_to_gbnf(piece) for piece in pieces[1 if begins else 0 : -1 if ends else None]]
    return f"{'' if begins else f'{character}* '}({' '.join(told)}){'' if ends else f' {character}*'}"


def _to_gbnf(piece: re.Match[str]) -> str:
    if piece["character"]:
        return _characters(piece[0])
    if piece["group"] or piece["times"]:
        return (piece["times"] or piece["group"]).replace("(?:", "(")
    raise ValueError(f"a grammar cannot follow {piece[0]} inside the pattern {piece.string!r}")


@cache
def _characters(kind: str) -> str:
    """The GBNF of one character that the regular expression `kind` matches, as JSON writes it in a string."""
    kind = r"[^\n\r\u2028\u2029]" if kind == "." else kind
    runs = [run[0] for part in _unescaped() for run in re.finditer(f"(?:{kind})+", part, re.ASCII)]
    options = ["[" + "".join(f"\\U{ord(run[0]):08X}-\\U{ord(run[-1]):08X}" for run in runs) + "]"] if runs else []
    options += [json.dumps(json.dumps(each)[1:-1]) for each in '"\\\b\f\n\r\t' if re.fullmatch(kind, each, re.ASCII)]
    if not options:
        raise ValueError(f"{kind} stands for characters that JSON has no short escape for")
    return f"({' | '.join(options)})"


@cache
def _unescaped() -> list[str]:
    """All characters that JSON takes as they are, in runs of successive ones."""
    return ["".join(map(chr, range(first, last + 1))) for first, last in UNESCAPED]
