"""One answer on its way to stdout: thoughts dimmed or left out, the rest as it comes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from specdec_cli.chat.thinking import Part, ThoughtStream
from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind
from specdec_cli.status import StatusLine


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """What is shown of answers: `text` on stdout, `thoughts` in it, tokens coloured by their kinds, a line about it."""

    text: bool = True
    thoughts: bool = True
    color_tokens: bool = False
    stats: bool = True


class AnswerView:
    """Shows one answer. `shown` is its text, without thoughts if these are not shown; `said` is always without."""

    def __init__(self, status: StatusLine, thoughts: ThoughtStream[Kind], options: ViewOptions) -> None:
        self._status = status
        self._thoughts = thoughts
        self._options = options
        self.shown = ""
        self.said = ""

    @property
    def lost_in_thought(self) -> bool:
        """Whether the answer ended before it came out of its thoughts."""
        return self._thoughts.open

    def write(self, segments: list[Segment[Kind]]) -> None:
        """Show what comes next."""
        self._show(self._thoughts.feed(segments))

    def finish(self) -> None:
        """Show what was held back; nothing more will come."""
        self._show(self._thoughts.finish())

    def _show(self, parts: list[Part[Kind]]) -> None:
        for thought, run in groupby(parts, key=lambda part: part.thought):
            segments = [part.segment for part in run]
            text = "".join(segment.text for segment in segments)
            if not thought:
                self.said += text
            elif not self._options.thoughts:
                continue
            self.shown += text
            if self._options.text:
                self._status.write(segments, by_kind=self._options.color_tokens, dim=thought)
