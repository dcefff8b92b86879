"""What llama.cpp's grammar engine would hang or die on, found in the text of a grammar before it sees it.

Its own check for left recursion misses rules that may be empty only through other rules; following such a
grammar fills the memory. So does `{5,2}`. Deep nesting overflows its stack, and after a token element it throws.
Everything else that can be wrong is left to its parser, which says it well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from typing import Final

from specdec_cli.errors import UsageError

DEEPEST: Final = 1000
"""Groups within groups; llama.cpp's parser takes about a kilobyte of stack for each."""

SYNTAX: Final = "the syntax is in llama.cpp's grammars/README.md"

WORD: Final = re.compile(
    r"""(?P<blank>\s+|\#[^\r\n]*)
      | (?P<rule>[A-Za-z0-9-]+)[ \t]*::=
      | (?P<reference>[A-Za-z0-9-]+)
      | (?P<nothing>""|\[\^?\])
      | (?P<terminal>"(?:\\.|[^"\\])+"|\[(?:\\.|[^\]\\])+\]|\.)
      | (?P<opening>\()
      | (?P<closing>\))
      | (?P<alternative>\|)
      | (?P<repetition>[*+?]|\{\s*(?P<least>\d+)\s*(?:,\s*(?P<most>\d*)\s*)?\})
      | (?P<token>!?<)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class _Item:
    """One element of a sequence: a reference to the rule `name`, or a terminal without a name."""

    name: str = ""
    optional: bool = False


_Sequence = list[_Item]
_Rules = dict[str, list[_Sequence]]
"""The alternatives of each rule; a group is a rule whose name begins with that of its owner and a bracket."""


def check_grammar(text: str, name: str) -> None:
    """Refuse a GBNF `text` that llama.cpp would not survive. `name` is how a message calls it.

    Raises:
        UsageError: it is empty, holds what is no text, is left-recursive, nested too deeply, or uses token elements.
    """
    if not text.strip():
        raise UsageError(f"{name} is empty", hint=SYNTAX)
    try:
        broken = b"\0" in text.encode()
    except UnicodeEncodeError:
        broken = True
    if broken:
        raise UsageError(f"{name} holds a zero byte or half of a surrogate pair", hint=SYNTAX)
    reader = _Reader(name)
    if reader.reads(text):
        _check_left_recursion(reader.rules, name)


@dataclass(slots=True)
class _Reader:
    """The structure of a grammar: enough to see what may be empty and what a rule may begin with."""

    name: str
    rules: _Rules = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _groups: int = 0

    def reads(self, text: str) -> bool:
        """Whether all of `text` was understood; llama.cpp's parser tells what is wrong with the rest."""
        steps: dict[str, Callable[[re.Match[str]], None]] = {
            "rule": self._begin,
            "reference": lambda word: self._add(_Item(word["reference"])),
            "nothing": lambda _: self._add(_Item(optional=True)),
            "terminal": lambda _: self._add(_Item()),
            "opening": self._enter,
            "closing": lambda _: self._leave(),
            "alternative": lambda _: self.rules[self._open[-1]].append([]),
            "repetition": self._repeat,
            "token": lambda _: self._refuse(),
        }
        at = 0
        try:
            while at < len(text):
                word = WORD.match(text, at)
                if word is None:
                    return False
                at = word.end()
                if word.lastgroup != "blank":
                    steps[str(word.lastgroup)](word)
        except IndexError:  # nothing is open, or there is nothing to repeat
            return False
        return True

    def _begin(self, word: re.Match[str]) -> None:
        self._open = [word["rule"]]
        self.rules[word["rule"]] = [[]]

    def _add(self, item: _Item) -> None:
        self.rules[self._open[-1]][-1].append(item)

    def _enter(self, _: re.Match[str]) -> None:
        if len(self._open) > DEEPEST:
            raise UsageError(
                f"{self.name} nests groups more than {DEEPEST} deep", hint="x{m,n} repeats without nesting"
            )
        self._groups += 1
        group = f"{self._open[0]}({self._groups}"
        self._add(_Item(group))
        self._open.append(group)
        self.rules[group] = [[]]

    def _leave(self) -> None:
        if len(self._open) < 2:
            raise IndexError("a bracket that nothing opened")
        self._open.pop()

    def _repeat(self, word: re.Match[str]) -> None:
        least, most = word["least"], word["most"]
        if least and most and int(most) < int(least):
            raise UsageError(
                f"{self.name} repeats at least {least} and at most {most} times in rule {self._open[0]}",
                hint="write {m,n} with m up to n",
            )
        item = self.rules[self._open[-1]][-1][-1]
        item.optional = item.optional or word[0] in "*?" or (bool(least) and int(least) == 0)

    def _refuse(self) -> None:
        raise UsageError(
            f"{self.name} has a token element in rule {self._open[0]}, which specdec does not follow",
            hint='write the text of the token in quotes, such as "</think>"; it allows control tokens too',
        )


def _check_left_recursion(rules: _Rules, name: str) -> None:
    """Refuse rules that can begin with themselves, also where everything before that may be empty."""
    empty = _possibly_empty(rules)
    beginnings = {rule: {each for items in rules[rule] for each in _beginnings(items, empty)} for rule in rules}
    try:
        TopologicalSorter(beginnings).prepare()
    except CycleError as error:
        chain = [rule.partition("(")[0] for rule in reversed(error.args[1])]
        shown = [rule for rule, _ in groupby(chain)]
        through = f" through {' > '.join(shown)}" if len(shown) > 1 else ""
        raise UsageError(
            f"{name} is left-recursive: rule {chain[0]} can begin with itself{through}",
            hint='put what is repeated last: item ("+" item)*',
        ) from None


def _possibly_empty(rules: _Rules) -> set[str]:
    empty: set[str] = set()
    while True:
        more = {
            rule
            for rule, alternatives in rules.items()
            if rule not in empty
            and any(all(item.optional or item.name in empty for item in items) for items in alternatives)
        }
        if not more:
            return empty
        empty |= more


def _beginnings(items: _Sequence, empty: set[str]) -> set[str]:
    """The rules that a sequence of `items` may begin with."""
    found = set()
    for item in items:
        if item.name:
            found.add(item.name)
        if not (item.optional or item.name in empty):
            break
    return found
