"""The three streams, what each of them may show, and the words that go to people.

Answers go to stdout, byte for byte when it is not a terminal. Everything else goes to stderr. Whether a
stream is a terminal and may be coloured is decided for each of them, when the program starts.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Final, TextIO

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.style import Style
from rich.text import Text

from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind
from specdec_cli.errors import SpecdecError

KIND_STYLES: Final = {
    Kind.ACCEPTED: Style(color="green"),
    Kind.CORRECTION: Style(color="red"),
    Kind.BONUS: Style(color="cyan"),
}
CONTROL_PICTURES: Final = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {
    0x7F: 0x2421,
    **dict.fromkeys(range(128, 160), 65533),
}
"""What a terminal shows for control characters, which a model could otherwise use to take it over."""
LONGEST_MESSAGE: Final = 600
ONE_LINE: Final = CONTROL_PICTURES | {ord("\n"): 0x240A, ord("\t"): 0x2409}


class PipeClosedError(Exception):
    """Whoever read our output has gone; there is nobody left to write to."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """The streams of this process; `quiet` keeps notices and progress (never errors) off stderr."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: TextIO
    environment: Mapping[str, str]
    quiet: bool = False
    console: Console = field(init=False)

    def __post_init__(self) -> None:
        # Rich only renders: writing itself, it would answer a closed pipe by leaving the program.
        console = Console(
            file=io.StringIO(),
            force_terminal=self.shows_messages,
            markup=False,
            emoji=False,
            highlight=False,
            soft_wrap=True,
        )
        object.__setattr__(self, "console", console)

    @classmethod
    def of_process(cls, *, quiet: bool = False) -> Terminal:
        """The terminal of this process as it is now."""
        return cls(sys.stdin.buffer, sys.stdout.buffer, sys.stderr, os.environ, quiet)

    @property
    def reads_keys(self) -> bool:
        """Whether stdin is a person at a keyboard."""
        return self.stdin.isatty()

    @property
    def shows_text(self) -> bool:
        """Whether stdout is a terminal."""
        return self.stdout.isatty()

    @property
    def shows_messages(self) -> bool:
        """Whether stderr is a terminal."""
        return self.stderr.isatty()

    @property
    def moves_cursor(self) -> bool:
        """Whether a line on stderr can be rewritten."""
        plain = self.environment.get("TERM") == "dumb" or self.console.legacy_windows
        return self.shows_messages and not plain and not self.quiet

    @property
    def colors_text(self) -> bool:
        """Whether stdout may hold colours."""
        plain = self.environment.get("NO_COLOR") or self.environment.get("TERM") == "dumb"
        return self.shows_text and not plain and not self.console.legacy_windows

    def write(self, segments: Iterable[Segment[Kind]], *, by_kind: bool = False, dim: bool = False) -> str:
        """Put text on stdout now; on a terminal control characters become visible. The text as shown, uncoloured.

        A terminal that shows colours has it coloured `by_kind` or `dim`.

        Raises:
            PipeClosedError: the reader has gone.
            SpecdecError: it cannot be written.
        """
        shown = list(segments)
        if self.shows_text:
            shown = [Segment(segment.text.translate(CONTROL_PICTURES), segment.mark) for segment in shown]
        color = ColorSystem.STANDARD if (by_kind or dim) and self.colors_text else None
        self.write_text(
            "".join(_to_style(s.mark, by_kind=by_kind, dim=dim).render(s.text, color_system=color) for s in shown)
        )
        return "".join(segment.text for segment in shown)

    def write_text(self, text: str) -> None:
        """Put `text` on stdout as it is, now.

        Raises:
            PipeClosedError: the reader has gone.
            SpecdecError: it cannot be written.
        """
        try:
            self.stdout.write(text.encode("utf-8", "replace"))
            self.stdout.flush()
        except OSError as error:
            _discard(self.stdout)
            if isinstance(error, BrokenPipeError):
                raise PipeClosedError from None
            raise SpecdecError(f"the answer cannot be written: {error.strerror}", hint="is the disk full?") from None

    def write_message(self, text: str) -> None:
        """Put `text` on stderr as it is, now. If that fails there is nobody to tell, and the answer still counts."""
        try:
            self.stderr.write(text)
            self.stderr.flush()
        except OSError:
            _discard(self.stderr)

    def log(self, text: str) -> None:
        """Pass on what another program logs."""
        self.write_message(text.translate(CONTROL_PICTURES))

    def notice(self, text: str) -> None:
        """Tell the user something that needs no action."""
        if not self.quiet:
            self.show(Text.assemble(("note: ", "bold cyan"), _short(text)))

    def error(self, message: str, hint: str) -> None:
        """Say what went wrong in one line, and the way out in another."""
        self.show(Text.assemble(("error: ", "bold red"), _short(message)))
        if hint:
            self.show(Text.assemble(("hint: ", "bold"), _short(hint)))

    def write_report(self, text: str, indent: int) -> None:
        """As `write_text`; on a terminal a line that is too long goes on at a word, `indent` columns in."""
        width = shutil.get_terminal_size().columns if self.shows_text else None
        self.write_text("".join(f"{fold(line, width, indent)}\n" for line in text.splitlines()))

    def show_styled(self, parts: Iterable[tuple[str, str]]) -> None:
        """Put text on stderr, given in parts with their styles, such as `bold` or `dim strike`; "" is none."""
        self.show(Text.assemble(*parts))

    def show(self, renderable: RenderableType) -> None:
        """Put `renderable` on stderr."""
        with self.console.capture() as captured:
            self.console.print(renderable)
        self.write_message(captured.get())


def _to_style(kind: Kind, *, by_kind: bool, dim: bool) -> Style:
    return Style.combine([KIND_STYLES[kind] if by_kind else Style(), Style(dim=dim)])


def _discard(stream: IO[bytes] | TextIO) -> None:
    """Send what a broken `stream` still holds nowhere: Python would fail on it once more when it exits."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _short(message: str) -> str:
    """`message` in one line, without the middle if it is too long to read: it may hold what somebody pasted."""
    line = message.translate(ONE_LINE)
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE // 2]} … {line[-LONGEST_MESSAGE // 2 :]}"


def fold(line: str, width: int | None, indent: int) -> str:
    """`line` in lines of `width` columns, or 40 if that is less, all but the first `indent` in; None folds nothing."""
    if width is None or len(line) <= width:
        return line
    return "\n".join(textwrap.wrap(line, max(width, 40), subsequent_indent=" " * indent, break_long_words=False))
