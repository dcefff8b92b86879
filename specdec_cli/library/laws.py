"""What both models say at each position of a text that is given: teacher forcing."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from specdec_cli.core.decode import Drafter
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Noise
from specdec_cli.core.past import Past
from specdec_cli.core.verify import Proposal
from specdec_cli.errors import UsageError
from specdec_cli.generation import Request
from specdec_cli.llama.caches import Caches, Need
from specdec_cli.llama.context import Context
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.session import Session

ROWS: Final = 16
"""Positions that are evaluated at once: a row of logits is 0.6 MB for 152,000 tokens."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text, counted from 0, and the laws of the token there, given those before it.

    `token` is the one that the text has there, None behind its end. `q` is what `drafter` would have drawn from,
    None where nothing would have been drafted.
    """

    place: int
    token: int | None
    p: Distribution
    q: Distribution | None
    drafter: str

    @property
    def probability(self) -> float | None:
        """p of the token; None behind the end."""
        return None if self.token is None else self.p.at(self.token)

    @property
    def overlap(self) -> float | None:
        """Σ min(p, q); None without a q."""
        return None if self.q is None else self.p.overlap(self.q)


def read_positions(
    session: Session, tokens: Sequence[int], request: Request, start: int
) -> Generator[Position, None, None]:
    """The positions of `tokens` from `start` on, and the one behind them; in caches of their own.

    Going on raises ModelError if a model fails, and KeyboardInterrupt after Ctrl-C.

    Raises:
        UsageError: there is no such start, or the text is empty or does not fit the context.
    """
    if not tokens:
        raise UsageError("the text is empty", hint="the first token has no position: nothing is before it")
    if not 1 <= start <= len(tokens):
        raise UsageError(
            f"start {start} is not in 1..{len(tokens)}", hint="the first token has no position: nothing is before it"
        )
    if len(tokens) > session.context_limit:
        raise UsageError(f"the text has {len(tokens)} tokens and the context holds {session.context_limit}")
    return _read_parts(session, tokens, request, start)


def _read_parts(
    session: Session, tokens: Sequence[int], request: Request, start: int
) -> Generator[Position, None, None]:
    interrupt = Interrupt()  # its own: that of the session may be in use by an answer in the making
    with _opened(session, len(tokens), interrupt) as (target, draft):
        drafter = session.open_drafter(request, draft) if session.pair.drafters else None
        past = Past(tokens[:start], window=request.chain.window)
        for place in range(start, len(tokens) + 1, ROWS):
            with interrupt:
                part = list(_read(target, drafter, tokens, request, past, place))
            interrupt.check()  # one that came behind the last pass
            past = _after(past, tokens[place : place + ROWS])
            yield from part


@contextmanager
def _opened(session: Session, size: int, interrupt: Interrupt) -> Iterator[tuple[Context, Context | None]]:
    """Contexts of the models for a text of `size` tokens."""
    models = [each for each in (session.target, session.draft) if each is not None]
    caches = Caches(session.settings, interrupt, models)
    needs = [Need(session.target, size, rows=ROWS, snapshots=0)]
    if session.draft is not None:
        needs.append(Need(session.draft, min(size, session.draft.trained_context), rows=1, snapshots=1))
    try:
        target, *draft = caches.open(needs)
        yield target, draft[0] if draft else None
    finally:
        caches.close()


def _read(
    target: Context, drafter: Drafter | None, tokens: Sequence[int], request: Request, past: Past, place: int
) -> Iterator[Position]:
    """Up to `ROWS` positions from `place` on, in one pass of the target."""
    if drafter is not None and target.length == 0:
        drafter.prefill(tokens[:place])
    target.extend(tokens[target.length : place - 1], rows=0)
    following = tokens[place - 1 : place - 1 + ROWS]
    for at, row in enumerate(target.extend(following, rows=len(following)), place):
        proposal = _draft(drafter, tokens[:at], request, past)
        token = tokens[at] if at < len(tokens) else None
        q = proposal.distributions[0] if proposal.distributions else None
        yield Position(at, token, request.chain.distribution(row, past), q, proposal.source if q else "")
        past = past if token is None else past.followed_by(token)


def _draft(drafter: Drafter | None, context: Sequence[int], request: Request, past: Past) -> Proposal:
    """One drafted token after `context`, whatever it is; empty without a drafter, or where it has nothing to say."""
    if drafter is None:
        return Proposal()
    chance = Noise(request.noise_seed).round(len(context), len(context))  # q is the same whatever is drawn
    proposal = drafter.propose(context, past, lambda drafted: len(drafted.tokens) > 0, chance)
    drafter.rewind(len(context))
    return proposal


def _after(past: Past, tokens: Sequence[int]) -> Past:
    for token in tokens:
        past = past.followed_by(token)
    return past
