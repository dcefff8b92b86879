"""Samplers that are not lossless. Each is a mistake that a real system made; the layers of proof must reject it.

A sampler is a verification rule and a way to propose; both take any `Model`, a toy or a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from specdec_cli.core.decode import StopRule
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance, ChanceSource, Noise
from specdec_cli.core.past import Past
from specdec_cli.core.verify import Kind, Proposal, Rule, TokenRule, Verdict, accept_probability
from specdec_cli.drafters.model import ModelDrafter
from tests.loops import Propose


@dataclass(frozen=True, slots=True)
class Sampler:
    """A way to propose and the rule that judges it."""

    rule: Rule
    propose: Propose


Accept = Callable[[Distribution, Distribution, int], float]
Replace = Callable[[Distribution, Distribution], Distribution]


@dataclass(frozen=True, slots=True)
class WrongRule:
    """The token rule with another acceptance probability or another residual."""

    accept: Accept = accept_probability
    replace: Replace = Distribution.residual

    def noise(self, seed: int) -> ChanceSource:
        return Noise(seed)

    def verify(self, proposal: Proposal, target: Callable[[int], Distribution], chance: Chance) -> Verdict:
        overlaps: list[float] = []
        for position, (token, q) in enumerate(zip(proposal.tokens, proposal.distributions, strict=True)):
            p = target(position)
            overlaps.append(p.overlap(q))
            if not chance.accept(position, self.accept(p, q, token)):
                return Verdict(position, chance.emit(position, self.replace(p, q)), Kind.CORRECTION, tuple(overlaps))
        length = len(proposal.tokens)
        return Verdict(length, chance.emit(length, target(length)), Kind.BONUS, tuple(overlaps))


def _at_each_id(p: Distribution, size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([p.at(token) for token in range(size)])


def _size(p: Distribution, q: Distribution) -> int:
    """Ids that either may know."""
    return 1 + max(d.weights.size - 1 if d.ids is None else int(d.ids[-1]) for d in (p, q))


def _absolute_residual(p: Distribution, q: Distribution) -> Distribution:
    size = _size(p, q)
    difference = np.abs(_at_each_id(p, size) - _at_each_id(q, size))
    return Distribution.of(difference) if difference.any() else p


def _accept_swapped(p: Distribution, q: Distribution, token: int) -> float:
    return min(1.0, q.at(token) / p.at(token)) if p.at(token) else 1.0


class ArgmaxDrafter(ModelDrafter):
    """Proposes the most likely token, and still claims to have drawn it from the whole of q."""

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        return super().propose(context, past, enough, _Luck(chance, _one_best))


class FilteredDrafter(ModelDrafter):
    """Draws from the two best tokens of q, and still claims to have drawn from the whole of q: unfiltered q."""

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        return super().propose(context, past, enough, _Luck(chance, _two_best))


class DroppingDrafter(ModelDrafter):
    """Ends its block before the first token that came out weak, after it was drawn."""

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        drawn = super().propose(context, past, enough, chance)
        weak = (q.at(token) < 0.4 for token, q in zip(drawn.tokens, drawn.distributions, strict=True))
        kept = next((index for index, is_weak in enumerate(weak) if is_weak), len(drawn.tokens))
        return Proposal(drawn.tokens[:kept], drawn.distributions[:kept])


@dataclass(frozen=True, slots=True)
class _Luck:
    """A `Chance` that draws the draft from something else than q."""

    chance: Chance
    instead: Callable[[Distribution], Distribution]

    def draft(self, position: int, q: Distribution) -> int:
        return self.chance.draft(position, self.instead(q))

    def accept(self, position: int, probability: float) -> bool:
        return self.chance.accept(position, probability)

    def emit(self, position: int, p: Distribution) -> int:
        return self.chance.emit(position, p)


def _one_best(q: Distribution) -> Distribution:
    best = int(q.weights.argmax())
    return Distribution.one_hot(best if q.ids is None else int(q.ids[best]))


def _two_best(q: Distribution) -> Distribution:
    places = np.sort(np.argsort(-q.weights, kind="stable")[:2])
    return Distribution.of(q.weights[places], places if q.ids is None else q.ids[places])


@dataclass(frozen=True, slots=True)
class PlainBlockRule:
    """The block rule as it is written down, one step after the other; by default without a mistake."""

    first_failure: bool = False
    """The largest prefix that passes replaced by the one before the first that fails."""
    token_residual: bool = False
    """The token rule's residual, norm(max(0, p - q))."""

    def noise(self, seed: int) -> ChanceSource:
        return Noise(seed)

    def verify(self, proposal: Proposal, target: Callable[[int], Distribution], chance: Chance) -> Verdict:
        length, shares, passes = len(proposal.tokens), [1.0], []
        for position, (token, q) in enumerate(zip(proposal.tokens, proposal.distributions, strict=True)):
            shares.append(min(1.0, shares[-1] * target(position).at(token) / q.at(token)))
        for kept in range(1, length + 1):
            rest = 1.0 if kept == length else float(self._rest(kept, shares[kept], proposal, target).sum())
            keep = (
                shares[kept] if kept == length else rest / (rest + 1 - shares[kept]) if rest > 0 else shares[kept] == 1
            )
            passes.append(chance.accept(kept - 1, keep))
        accepted = passes.index(False) if self.first_failure and False in passes else 0
        if not self.first_failure or all(passes):
            accepted = max((kept for kept in range(1, length + 1) if passes[kept - 1]), default=0)
        if accepted == length:
            return Verdict(length, chance.emit(length, target(length)), Kind.BONUS, ())
        residual = self._rest(accepted, 1.0 if self.token_residual else shares[accepted], proposal, target)
        after = Distribution.of(residual) if residual.any() else target(accepted)
        return Verdict(accepted, chance.emit(accepted, after), Kind.CORRECTION, ())

    def _rest(
        self, kept: int, share: float, proposal: Proposal, target: Callable[[int], Distribution]
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        p, q = target(kept), proposal.distributions[kept]
        size = _size(p, q)
        return np.maximum(share * _at_each_id(p, size) - _at_each_id(q, size), 0)


RIGHT: Final = Sampler(TokenRule(), ModelDrafter)

WRONG_RULES: Final[dict[str, Rule]] = {
    "residual from p": WrongRule(replace=lambda p, _: p),
    "accept all": WrongRule(accept=lambda *_: 1.0),
    "p and q swapped": WrongRule(accept=_accept_swapped, replace=lambda p, q: q.residual(p)),
    "residual |p - q|": WrongRule(replace=_absolute_residual),
}

WRONG_PROPOSALS: Final[dict[str, Propose]] = {
    "arg-max draft verified by p/q": ArgmaxDrafter,
    "unfiltered q": FilteredDrafter,
    "weak tokens dropped after drawing": DroppingDrafter,
}

WRONG: Final = {name: Sampler(rule, ModelDrafter) for name, rule in WRONG_RULES.items()} | {
    name: Sampler(TokenRule(), propose) for name, propose in WRONG_PROPOSALS.items()
}

WRONG_BLOCKS: Final[dict[str, Sampler]] = {
    "first failure in place of the largest prefix": Sampler(PlainBlockRule(first_failure=True), ModelDrafter),
    "token-level residual": Sampler(PlainBlockRule(token_residual=True), ModelDrafter),
}
"""Wrong for blocks of two tokens and more."""
