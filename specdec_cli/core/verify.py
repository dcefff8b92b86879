"""Which drafted tokens the target keeps, and the one token that it adds: the step that makes speculation lossless.

Each function is small enough to be proved alone. For any p, q and token x,
q(x) · accept(x) + (1 - Σ q · accept) · residual(x) = p(x) holds exactly, and a round is that identity repeated.
It knows nothing about models: p and q come in as distributions, luck as a `Chance`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance


class Kind(StrEnum):
    """How an emitted token came to be; see the glossary in `specdec_cli.core`."""

    ACCEPTED = "accepted"
    CORRECTION = "correction"
    BONUS = "bonus"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A drafted block: `tokens[i]` was drawn from `distributions[i]`, given the context and `tokens[:i]`."""

    tokens: tuple[int, ...] = ()
    distributions: tuple[Distribution, ...] = ()

    def followed_by(self, token: int, q: Distribution) -> Proposal:
        """One token longer."""
        return Proposal((*self.tokens, token), (*self.distributions, q))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a block: how many leading tokens are `accepted`, the `token` that follows them, and its `kind`.

    `overlaps[i]` is Σ min(p, q) at examined position i.
    """

    accepted: int
    token: int
    kind: Kind
    overlaps: tuple[float, ...]


class Rule(Protocol):
    """A lossless verification rule."""

    def verify(self, proposal: Proposal, target: Callable[[int], Distribution], chance: Chance) -> Verdict:
        """Judge `proposal`; `target(i)` is p after its first i tokens, i = 0..γ, and is asked only when needed.

        `chance` must be fresh for this round.
        """
        ...


def accept_probability(p: Distribution, q: Distribution, token: int) -> float:
    """min(1, p(x) / q(x)) for a `token` drawn from `q`, so that q(x) is 0 at most by underflow."""
    ours, theirs = p.at(token), q.at(token)
    return 1.0 if ours >= theirs else ours / theirs


class TokenRule:
    """Accept token by token with min(1, p/q); replace the first rejected one from the residual.

    Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2.
    """

    def verify(self, proposal: Proposal, target: Callable[[int], Distribution], chance: Chance) -> Verdict:
        """See `Rule.verify`. Target rows after the first rejection are never turned into distributions."""
        overlaps: list[float] = []
        for position, (token, q) in enumerate(zip(proposal.tokens, proposal.distributions, strict=True)):
            p = target(position)
            overlaps.append(p.overlap(q))
            if not chance.accept(position, accept_probability(p, q, token)):
                return Verdict(position, chance.emit(p.residual(q)), Kind.CORRECTION, tuple(overlaps))
        return Verdict(len(proposal.tokens), chance.emit(target(len(proposal.tokens))), Kind.BONUS, tuple(overlaps))
