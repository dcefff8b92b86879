"""What a trace says, as values: answers, their rounds, and each token with all that decided on it.

The file is described in `docs/trace.md`. Probabilities and draws are in 0..1, entropies in nats. Knows no files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from specdec_cli.core.costs import Costs
from specdec_cli.core.draft_length import Outlook
from specdec_cli.core.step import RoundSeconds
from specdec_cli.core.verify import Kind
from specdec_cli.limits import DraftTokens

SCHEMA: Final = 1
"""Of the files that are written, and the only one that is read."""
LARGEST_RATIO: Final = 1e300
"""Beyond it a p/q is as good as infinite."""

Decided = Literal["accepted", "rejected", "unexamined", "cut"]
"""What became of a drafted token. The answer ended before one that is cut, which counts as not drafted."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its id, its own `data`, and that as `text`, with U+FFFD for what is no UTF-8.

    A character may be split over tokens: the text of several is that of their data, joined.
    """

    id: int
    text: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that could have come at an examined position, with its probabilities of the target and of the draft."""

    id: int
    text: str
    p: float
    q: float


@dataclass(frozen=True, slots=True)
class Chance:
    """A token of the law that a round's own token was drawn from."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Examined:
    """What the target said at the place of a drafted token.

    `p` is the token's probability, `ratio` p/q (None if infinite), `overlap` Σ min(p, q) of the position, and `top`
    the likeliest tokens of p and of q, and the drafted one, by p.
    """

    p: float
    ratio: float | None
    overlap: float
    p_entropy: float
    top: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Drafted:
    """A drafted token, its probability `q`, and what became of it.

    The rule kept it if `draw` was below `probability`; `draw` is None where that was 0 or 1, and both are None where
    no number decided: under the coupled rule, and under the block rule in front of the token that was kept last,
    and all before it with that one. Under the block rule a token behind the first rejected one has a decision too.
    `examined` is None for an unexamined one.
    """

    token: Token
    confidence: float
    q: float
    q_entropy: float
    decision: Decided
    probability: float | None
    draw: float | None
    examined: Examined | None


@dataclass(frozen=True, slots=True)
class Emitted:
    """A token of the answer."""

    token: Token
    kind: Kind


@dataclass(frozen=True, slots=True)
class Last:
    """Where the round's own token was drawn from: the `law`, its likeliest tokens first, the drawn one among them, at
    `draw` of its cumulative distribution by ids. `draw` is None where the law is certain, and under the coupled rule.

    If it was an end of generation, it ended the answer and is no emitted token.
    """

    kind: Kind
    draw: float | None
    entropy: float
    law: tuple[Chance, ...]


@dataclass(frozen=True, slots=True)
class TracedRound:
    """Round `index`; its first token has `place` in the text, prompt included. `drafter` may have drafted nothing.

    `outlook` is what --draft-tokens auto expected of the block.
    """

    index: int
    place: int
    drafter: str
    drafted: tuple[Drafted, ...]
    emitted: tuple[Emitted, ...]
    last: Last | None
    ended: bool
    seconds: RoundSeconds
    outlook: Outlook | None


@dataclass(frozen=True, slots=True)
class Header:
    """What was asked of which pair. `costs` are those of this pair on its machine, if they were known.

    The noise is that of `seed` and `turn`, which counts the answers of a chat. `label` is what bench says of the
    answer, such as its prompt and draft length.
    """

    specdec: str
    target: str
    draft: str | None
    rule: str
    seed: int
    turn: int
    draft_tokens: DraftTokens
    prompt_tokens: int
    vocabulary: int
    sampling: Mapping[str, Any]
    draft_temperature: str
    costs: Costs | None
    label: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class End:
    """How an answer ended, and its statistics as --json has them."""

    finish_reason: str
    stats: Mapping[str, Any]


TraceRecord = Header | TracedRound | End
"""What a line says."""


@dataclass(frozen=True, slots=True)
class TracedAnswer:
    """An answer; `end` is None if it was never reached."""

    header: Header
    rounds: tuple[TracedRound, ...]
    end: End | None


@dataclass(frozen=True, slots=True)
class Trace:
    """The answers of a file, in order; one at least."""

    answers: tuple[TracedAnswer, ...]
