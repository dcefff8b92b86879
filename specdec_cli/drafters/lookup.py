"""Prompt lookup: what followed the last time that the context ended like this (Saxena 2023, "Prompt lookup decoding").

Deterministic, so its q is one-hot whatever the temperature. It reads tokens only, never a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from specdec_cli.core.decode import StopRule
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance
from specdec_cli.core.past import Past
from specdec_cli.core.verify import Proposal

SHORTEST: Final = 2
LONGEST: Final = 8
"""Lengths of the n-grams that are compared; the longest that occurred before wins, then the most recent."""


class LookupDrafter:
    """Finds the longest recent n-gram in O(`LONGEST`) a token, whatever the length of the context."""

    name: Final = "lookup"
    exhausted: Final = False

    def __init__(self) -> None:
        self._seen: list[int] = []
        self._follows: dict[tuple[int, ...], int] = {}

    def prefill(self, prompt: Sequence[int]) -> None:
        """See `Drafter.prefill`: index all of the prompt that something can follow."""
        self._index(prompt)

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        """See `Drafter.propose`. A match that reaches the end of the context goes on into what it proposed.

        It ends before a token that a mask forbids, which the target would refuse.
        """
        self._index(context)
        proposal = Proposal(source=self.name)
        start = self._match(context)
        if start is None:
            return proposal
        while not enough(proposal):
            at = start + len(proposal.tokens)
            token = context[at] if at < len(context) else proposal.tokens[at - len(context)]
            if past.mask is not None and not past.mask.allowed(np.array([token]))[0]:
                break
            proposal = proposal.followed_by(token, Distribution.one_hot(token))
            past = past.followed_by(token)
        return proposal

    def rewind(self, length: int) -> None:
        """See `Drafter.rewind`. Only a context that lost indexed tokens is indexed anew."""
        if length < len(self._seen):
            kept = self._seen[:length]
            self._seen, self._follows = [], {}
            self._index(kept)

    def _index(self, context: Sequence[int]) -> None:
        """Note, for every n-gram that ends before the last token of `context`, where it was followed."""
        while len(self._seen) < len(context) - 1:
            self._seen.append(context[len(self._seen)])
            end = len(self._seen)
            for length in range(SHORTEST, min(LONGEST, end) + 1):
                self._follows[tuple(self._seen[end - length :])] = end

    def _match(self, context: Sequence[int]) -> int | None:
        """Where what followed the longest earlier copy of the end of `context` begins."""
        for length in range(min(LONGEST, len(context)), SHORTEST - 1, -1):
            start = self._follows.get(tuple(context[len(context) - length :]))
            if start is not None:
                return start
        return None
