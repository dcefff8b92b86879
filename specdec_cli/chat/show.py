"""What /stats, /draft, /set and /help show, as parts with their styles: pure functions of numbers and names."""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from specdec_cli.chat.choices import DEFAULT
from specdec_cli.chat.slash import Command
from specdec_cli.core.decode import Round
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.core.text import TextStream
from specdec_cli.core.verify import Kind
from specdec_cli.render import to_bars, to_short_summary
from specdec_cli.terminal import CONTROL_PICTURES, KIND_STYLES, ONE_LINE

Parts = list[tuple[str, str]]

REJECTED: Final = "dim strike"
LEGEND: Final = {Kind.ACCEPTED: "accepted", Kind.CORRECTION: "corrected", Kind.BONUS: "bonus"}


def to_help(commands: Sequence[Command[Any]]) -> Parts:
    """The table of commands, and the keys."""
    names = [f"/{each.name} {each.argument}".rstrip() for each in commands]
    width = max(map(len, names)) + 2
    rows: Parts = []
    for name, command in zip(names, commands, strict=True):
        rows += [(name.ljust(width), "bold"), (f"{command.help}\n", "")]
    keys = "Enter sends, Alt-Enter begins a new line, Ctrl-C stops an answer, Ctrl-D ends.\n//text says /text."
    return [*rows, (keys, "dim")]


def to_settings(values: Mapping[str, Any]) -> Parts:
    """Settings and their values, a line each."""
    width = max(map(len, values)) + 2
    lines = [f"{name.ljust(width)}{_plain(value)}".translate(ONE_LINE) for name, value in values.items()]
    return [("\n".join(lines), "")]


def to_session(counters: Counters, timing: Timing, answers: int) -> Parts:
    """What all answers came to, with bars of how often each position of a block was kept."""
    count = f"{answers} answer{'' if answers == 1 else 's'}"
    lines = [f"{count} · {to_short_summary(counters, timing, reason=None)}", *to_bars(counters)]
    return [("\n".join(lines), "dim")]


def to_draft(rounds: Iterable[Round], pieces: Sequence[bytes], *, styled: bool) -> Parts:
    """An answer with what its rounds rejected, struck through before what took its place.

    Where nothing is `styled`, what was rejected stands in [- -] and a correction in {+ +}.
    """
    stream: TextStream[Kind] = TextStream()
    parts: Parts = []
    kind = Kind.BONUS
    for each in rounds:
        for token, kind in zip(each.tokens[: each.accepted], each.kinds, strict=False):
            parts += [_emitted(s.text, s.mark, styled=styled) for s in stream.feed(pieces[token], kind)]
        if each.rejected:
            parts.append(_rejected(b"".join(pieces[token] for token in each.rejected), styled=styled))
        if each.last is not None:
            kind = each.last
            parts += [_emitted(s.text, s.mark, styled=styled) for s in stream.feed(pieces[each.tokens[-1]], kind)]
    parts += [_emitted(s.text, s.mark, styled=styled) for s in stream.finish(kind)]
    return [*parts, ("\n", ""), *_legend(styled=styled)]


def _emitted(text: str, kind: Kind, *, styled: bool) -> tuple[str, str]:
    shown = text.translate(CONTROL_PICTURES)
    if styled:
        return shown, str(KIND_STYLES[kind])
    return (f"{{+{shown}+}}" if kind is Kind.CORRECTION else shown), ""


def _rejected(data: bytes, *, styled: bool) -> tuple[str, str]:
    text = codecs.decode(data, "utf-8", "replace").translate(ONE_LINE)
    return (text, REJECTED) if styled else (f"[-{text}-]", "")


def _legend(*, styled: bool) -> Parts:
    if not styled:
        return [("[-rejected-] {+corrected+}", "")]
    named: Parts = [(name, str(KIND_STYLES[kind])) for kind, name in LEGEND.items()]
    return [part for each in (*named, ("rejected", REJECTED)) for part in (each, (" ", ""))][:-1]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return _plain([f"{key}={'-inf' if each is None else f'{each:g}'}" for key, each in value.items()])
    if isinstance(value, tuple):
        return ";".join(value)
    if isinstance(value, list):
        return shlex.join(value) or DEFAULT
    return DEFAULT if value is None else f"{value:g}" if isinstance(value, float) else str(value)
