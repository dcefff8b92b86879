"""One drafted block as a rule must judge it, worked out once more from p and q in float64.

Rows of p behind the first one that is not kept are unknown here, so that of the block rule less can be said of a
block that was rejected early: that its first i tokens are kept at least has the chance w_i, given these tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from specdec_cli.audit.laws import Law, distance, residual
from specdec_cli.core.witness import Decision

EXACT: Final = 1e-3
"""The engine works in float32; a probability that is off by more is another one."""
VAGUE: Final = 0.05
"""A quotient by less magnifies rounding too much to be compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """`tokens` drawn from the laws `q` each, and the laws `p` of all positions up to the one behind what was kept."""

    rule: str
    tokens: Sequence[int]
    q: Sequence[Law]
    p: Sequence[Law]

    @property
    def kept(self) -> int:
        """How many tokens were."""
        return len(self.p) - 1

    @property
    def chances(self) -> list[float]:
        """How likely each token is kept that it can be said of, if those before it are."""
        examined = min(len(self.tokens), 1 if self.rule == "block" else self.kept + 1)
        return [min(1.0, self._ratio(position)) for position in range(examined)]

    @property
    def last(self) -> Law:
        """What the token behind those that were kept comes from."""
        if self.kept == len(self.tokens):
            return self.p[self.kept]
        return residual(self.p[self.kept], self.q[self.kept], self._share(self.kept))

    def ends_with(self, law: Law) -> bool:
        """Whether `law` is what the token behind those that were kept should come from, as far as rounding allows."""
        if self.kept < len(self.tokens):
            rest = np.maximum(self._share(self.kept) * self.p[self.kept] - self.q[self.kept], 0)
            if rest.sum() <= VAGUE:
                return True
        return distance(law, self.last) <= EXACT

    def agrees(self, decisions: Mapping[int, Decision]) -> bool:
        """Whether what was kept follows from `decisions`, and their probabilities from p and q."""
        said = [position for position, each in decisions.items() if each.kept]
        refused = [position for position, each in decisions.items() if not each.kept]
        kept = max(said, default=-1) + 1 if self.rule == "block" else min(refused, default=len(self.tokens))
        expected = self._decisions()
        right = all(
            position in decisions and abs(decisions[position].probability - chance) <= EXACT
            for position, chance in expected.items()
        )
        return right and kept == self.kept

    def _decisions(self) -> dict[int, float]:
        """The probabilities of decisions that must have been made and can be worked out here."""
        if self.rule != "block":
            return dict(enumerate(self.chances))
        decisions = {}
        if 0 < self.kept < len(self.tokens):
            share = self._share(self.kept)
            rest = float(np.maximum(share * self.p[self.kept] - self.q[self.kept], 0).sum())
            if rest + 1 - share > VAGUE:
                decisions[self.kept - 1] = rest / (rest + 1 - share)
        if self.kept >= len(self.tokens) - 1 and self.tokens:
            decisions[len(self.tokens) - 1] = self._share(len(self.tokens))
        return {position: chance for position, chance in decisions.items() if chance > 0}

    def _share(self, count: int) -> float:
        """The block rule's w behind `count` tokens; 1 for other rules, whose residual knows no such thing."""
        share = 1.0
        for position in range(count if self.rule == "block" else 0):
            share = min(1.0, share * self._ratio(position))
        return share

    def _ratio(self, position: int) -> float:
        """p(x) / q(x) of the token at `position`."""
        ours, theirs = (float(law[self.tokens[position]]) for law in (self.p[position], self.q[position]))
        return ours / theirs if theirs else 1.0
