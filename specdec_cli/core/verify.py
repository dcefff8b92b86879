"""Which drafted tokens the target keeps, and the one token that it adds: the step that makes speculation lossless.

Three rules, each lossless, for any draft and any draft length that is chosen by looking at the drafted prefix
and earlier rounds only. `TokenRule` judges token by token. `BlockRule` judges the block as a whole and keeps at
least as much of it on average. `CoupledRule` keeps less, and its text is a function of the seed alone.
Each brings the `noise` that it needs. None knows models: p and q come in as distributions, luck as a `Chance`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance, ChanceSource, Noise, SharedNoise


class Kind(StrEnum):
    """How an emitted token came to be; see the glossary in `specdec_cli.core`."""

    ACCEPTED = "accepted"
    CORRECTION = "correction"
    BONUS = "bonus"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A drafted block of the drafter `source`: `tokens[i]` was drawn from `distributions[i]`, given `tokens[:i]`.

    `confidences[i]`, in 0..1, is how sure the drafter is of position i; of the position behind the tokens too, if it
    knows that without drawing. They decide nothing but how far to draft.
    """

    tokens: tuple[int, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    confidences: tuple[float, ...] = ()
    source: str = ""

    def followed_by(self, token: int, q: Distribution, confidence: float = 1.0) -> Proposal:
        """One token longer."""
        confidences = (*self.confidences[: len(self.tokens)], confidence)
        return Proposal((*self.tokens, token), (*self.distributions, q), confidences, self.source)

    def expecting(self, confidence: float) -> Proposal:
        """The same of a drafter that is so sure of its next token, whatever luck will draw."""
        return replace(self, confidences=(*self.confidences[: len(self.tokens)], confidence))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a block: how many leading tokens are `accepted`, the `token` that follows them, and its `kind`.

    `overlaps[i]` is Σ min(p, q) at examined position i.
    """

    accepted: int
    token: int
    kind: Kind
    overlaps: tuple[float, ...]


Target = Callable[[int], Distribution]
"""`target(i)` is p after the first i tokens of a block, i = 0..γ. It is worked out when first asked for."""


class Rule(Protocol):
    """A lossless verification rule."""

    def noise(self, seed: int) -> ChanceSource:
        """The luck that it needs."""
        ...

    def verify(self, proposal: Proposal, target: Target, chance: Chance) -> Verdict:
        """Judge `proposal`, whose tokens were drawn with the same `chance`, one of `noise`."""
        ...


def accept_probability(p: Distribution, q: Distribution, token: int) -> float:
    """min(1, p(x) / q(x)) for a `token` drawn from `q`, so that q(x) is 0 at most by underflow."""
    ours, theirs = p.at(token), q.at(token)
    return 1.0 if ours >= theirs else ours / theirs


class TokenRule:
    """Accept token by token with min(1, p/q); replace the first rejected one from the residual.

    For any p, q and token x, q(x) · accept(x) + (1 - Σ q · accept) · residual(x) = p(x) holds exactly, and a
    round is that identity repeated.
    Source: Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2.
    """

    def noise(self, seed: int) -> ChanceSource:
        """See `Rule.noise`."""
        return Noise(seed)

    def verify(self, proposal: Proposal, target: Target, chance: Chance) -> Verdict:
        """See `Rule.verify`. Target rows after the first rejection are never turned into distributions."""
        overlaps: list[float] = []
        for position, (token, q) in enumerate(zip(proposal.tokens, proposal.distributions, strict=True)):
            p = target(position)
            overlaps.append(p.overlap(q))
            if not chance.accept(position, accept_probability(p, q, token)):
                return Verdict(position, chance.emit(position, p.residual(q)), Kind.CORRECTION, tuple(overlaps))
        return _whole(proposal, target, chance, overlaps)


class BlockRule:
    """Keep the longest prefix that passes a test of its own, so that a token may make up for the one before it.

    With w_0 = 1 and w_i = min(1, w_(i-1) · p(x_i) / q(x_i)), prefix i of γ passes with probability
    h_i = R_i / (R_i + 1 - w_i), R_i = Σ max(0, w_i · p - q) after it, and h_γ = w_γ. What follows the longest
    one that passes is drawn from norm(max(0, w_i · p - q)).
    Source: Sun et al. 2024, "Block Verification Accelerates Speculative Decoding", algorithm 2.
    """

    def noise(self, seed: int) -> ChanceSource:
        """See `Rule.noise`."""
        return Noise(seed)

    def verify(self, proposal: Proposal, target: Target, chance: Chance) -> Verdict:
        """See `Rule.verify`. Every row is needed up to where w is 0; residuals only behind what is not kept."""
        shares = block_shares(proposal, target)
        kept = len(shares) - 1
        while kept and not chance.accept(kept - 1, keep_probability(kept, shares[kept], proposal, target)):
            kept -= 1
        if kept == len(proposal.tokens):
            return _whole(proposal, target, chance, _overlaps(proposal, target, kept))
        residual = target(kept).residual(proposal.distributions[kept], shares[kept])
        token = chance.emit(kept, residual)
        return Verdict(kept, token, Kind.CORRECTION, _overlaps(proposal, target, kept + 1))


class CoupledRule:
    """Draw the target's own token with the noise that drew the drafted one; keep the drafted one if they agree.

    What is emitted is always the target's draw, so the text is that of plain decoding with the same noise: any
    draft, any draft length and no draft give the same one.
    Source: Daliri, Musco and Suresh 2024, "Coupling without Communication and Drafter-Invariant Speculative
    Decoding".
    """

    def noise(self, seed: int) -> ChanceSource:
        """See `Rule.noise`."""
        return SharedNoise(seed)

    def verify(self, proposal: Proposal, target: Target, chance: Chance) -> Verdict:
        """See `Rule.verify`. Target rows after the first disagreement are never turned into distributions."""
        for position, drafted in enumerate(proposal.tokens):
            token = chance.emit(position, target(position))
            if token != drafted:
                return Verdict(position, token, Kind.CORRECTION, _overlaps(proposal, target, position + 1))
        return _whole(proposal, target, chance, _overlaps(proposal, target, len(proposal.tokens)))


RULES: Final[dict[str, Rule]] = {"token": TokenRule(), "block": BlockRule(), "coupled": CoupledRule()}
"""By the names that users give."""


def block_shares(proposal: Proposal, target: Target) -> list[float]:
    """The block rule's w_0, w_1, ..., as many as are above 0: no longer prefix can be kept."""
    shares = [1.0]
    for position, (token, q) in enumerate(zip(proposal.tokens, proposal.distributions, strict=True)):
        ours, theirs = shares[-1] * target(position).at(token), q.at(token)
        if ours == 0:
            break
        shares.append(1.0 if ours >= theirs else ours / theirs)
    return shares


def keep_probability(kept: int, share: float, proposal: Proposal, target: Target) -> float:
    """The block rule's h for the first `kept` tokens, of which `share` is w."""
    if kept == len(proposal.tokens) or share == 1:
        return share
    rest = target(kept).excess(proposal.distributions[kept], share).total
    return rest / (rest + 1 - share)


def _overlaps(proposal: Proposal, target: Target, examined: int) -> tuple[float, ...]:
    return tuple(target(index).overlap(q) for index, q in enumerate(proposal.distributions[:examined]))


def _whole(proposal: Proposal, target: Target, chance: Chance, overlaps: Sequence[float]) -> Verdict:
    """All of `proposal` is kept, and one token of the target follows."""
    length = len(proposal.tokens)
    return Verdict(length, chance.emit(length, target(length)), Kind.BONUS, tuple(overlaps))
