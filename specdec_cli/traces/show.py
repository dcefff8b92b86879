"""Rounds of a trace for reading: a block of lines each, as wide as the window, coloured where that is wanted."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.color import ColorSystem
from rich.style import Style

from specdec_cli.core.verify import Kind
from specdec_cli.terminal import KIND_STYLES, Terminal
from specdec_cli.traces.trace import Chance, Drafted, Emitted, End, Header, Last, TracedRound, TraceRecord
from specdec_cli.traces.wording import about, chance, labelled, milliseconds, plain, quoted, quoted_text, ratio, why

WIDTH_IN_A_PIPE: Final = 120
NUMBERS: Final = 68
"""Columns of a line beside its token."""
NARROWEST, WIDEST = 8, 30
"""Columns of a token."""
NONE: Final = Style()
DIM: Final = Style(dim=True)
BOLD: Final = Style(bold=True)
REJECTED: Final = Style(strike=True, dim=True)

Line = list[tuple[str, Style]]


@dataclass(frozen=True, slots=True)
class Frame:
    """How much fits beside each other, and whether in colours."""

    columns: int
    colors: bool

    @property
    def token(self) -> int:
        """Columns of a token."""
        return min(max(self.columns - NUMBERS, NARROWEST), WIDEST)


def frame_of(terminal: Terminal) -> Frame:
    """What stdout has room for."""
    if not terminal.shows_text:
        return Frame(WIDTH_IN_A_PIPE, colors=False)
    return Frame(shutil.get_terminal_size().columns, terminal.colors_text)


def to_blocks(records: Iterable[TraceRecord], frame: Frame) -> Iterator[str]:
    """A block of text for each of `records`, which may be some rounds of an answer only."""
    rule = ""
    for record in records:
        if isinstance(record, Header):
            rule = record.rule
            lines = _header(record, frame)
        elif isinstance(record, End):
            lines = [[(f"ended: {plain(record.finish_reason)}", BOLD)]]
        else:
            lines = list(_round(record, rule, frame))
        yield "".join(_rendered(line, frame) + "\n" for line in lines) + "\n"


def _rendered(line: Line, frame: Frame) -> str:
    system = ColorSystem.STANDARD if frame.colors else None
    return "".join(style.render(text, color_system=system) for text, style in line if text).rstrip()


def _header(header: Header, frame: Frame) -> list[Line]:
    parts = [*about(header), *([labelled(header.label)] if header.label else [])]
    return [[(text, BOLD)] for text in wrapped(parts, frame.columns)]


def _round(traced: TracedRound, rule: str, frame: Frame) -> Iterator[Line]:
    yield from _title(traced, frame)
    if traced.outlook is not None and traced.drafted:
        yield [(f"  expected {traced.outlook.tokens:.2f} tokens for {traced.outlook.cost:.2f} plain steps", DIM)]
    for drafted in traced.drafted:
        yield _drafted(drafted, rule, frame)
    for emitted in traced.emitted:
        if emitted.kind is not Kind.ACCEPTED:
            yield _own(emitted, traced.last, rule, frame)
    if traced.ended and traced.last is not None:
        yield [("  the end    ", BOLD), (_law(traced.last, None, rule, frame.columns - 13), NONE)]


def _title(traced: TracedRound, frame: Frame) -> Iterator[Line]:
    kept = sum(each.decision == "accepted" for each in traced.drafted)
    did = f"{plain(traced.drafter)} drafted {len(traced.drafted)}, kept {kept}" if traced.drafted else "nothing drafted"
    each = {"draft": traced.seconds.draft, "verify": traced.seconds.verify, "sample": traced.seconds.sample}
    times = ", ".join(f"{name} {milliseconds(seconds)}" for name, seconds in each.items() if seconds)
    for text in wrapped(
        [f"round {traced.index}", f"place {traced.place}", did, *([f"{times} ms"] if times else [])], frame.columns
    ):
        yield [(text, BOLD)]


def _drafted(drafted: Drafted, rule: str, frame: Frame) -> Line:
    style = {"accepted": KIND_STYLES[Kind.ACCEPTED], "rejected": REJECTED}.get(drafted.decision, DIM)
    examined = drafted.examined
    numbers = f"  p {chance(examined.p):<5}" if examined else " " * 9
    numbers += f"  q {chance(drafted.q):<5}"
    if examined:
        numbers += f"  p/q {ratio(examined.ratio):<5}  Σmin {examined.overlap:.2f}"
    else:
        numbers += " " * 22
    return [
        (f"  {drafted.decision:<10} ", style),
        (set_cell_size(quoted(drafted.token), frame.token), style),
        (numbers + "  ", NONE),
        (why(drafted, rule), NONE),
    ]


def _own(emitted: Emitted, last: Last | None, rule: str, frame: Frame) -> Line:
    style = KIND_STYLES[emitted.kind]
    line: Line = [(f"  {emitted.kind.value:<10} ", style), (set_cell_size(quoted(emitted.token), frame.token), style)]
    if last is None:
        return line
    return [*line, (f"  {_law(last, emitted.token.id, rule, frame.columns - 15 - frame.token)}", NONE)]


def _law(last: Last, token: int | None, rule: str, room: int) -> str:
    """What `token` was drawn from and where, in as much as fits into `room` columns."""
    own = next((each.probability for each in last.law if each.id == token), None)
    text = "p" if last.kind is Kind.BONUS or rule == "coupled" else "residual"
    text += "" if own is None else f" {chance(own)}"
    text += "" if last.draw is None else f"  at {chance(last.draw)}"
    for index, each in enumerate(last.law):
        longer = f"{text}{' · ' if index else ': '}{_chance(each)}"
        if cell_len(longer) > room:
            break
        text = longer
    return text


def _chance(one: Chance) -> str:
    return f"{quoted_text(one.text)} {chance(one.probability)}"


def wrapped(parts: Iterable[str], columns: int) -> Iterator[str]:
    """`parts` in lines of `columns` at most, as long as no part is longer than that."""
    line = ""
    for part in parts:
        longer = f"{line} · {part}" if line else part
        if line and cell_len(longer) > columns:
            yield line
            longer = f"  {part}"
        line = longer
    yield line
