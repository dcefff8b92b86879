"""A small language model as the draft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from specdec_cli.core.cached import keep_shared
from specdec_cli.core.decode import Model, StopRule
from specdec_cli.core.distribution import Distribution, Ids
from specdec_cli.core.noise import Chance
from specdec_cli.core.past import Mask, Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.masking import NothingAllowedError
from specdec_cli.core.top_k import Logits, top_k_ids
from specdec_cli.core.verify import Proposal

LIKELIEST: Final = 64
"""Tokens that a mask is asked about to tell how sure a draft is: it has judged more than that to find its best one."""


class ModelDrafter:
    """Draws every token from the draft's own distribution after `chain`: the target's, at the draft's temperature.

    `vocabulary` is the number of ids that both models know. What the draft has beyond it is padding and
    never drawn; what the target has beyond it the draft reads as another token, since a guess may rest on
    anything. `capacity` is how many tokens the draft's cache can hold.
    """

    name: str = "model"
    is_free: bool = False
    """Whether a step costs next to nothing, so that it is taken before it is asked for: how sure the next token will
    be is then known before it is drawn."""

    def __init__(self, model: Model, chain: SamplingChain, *, vocabulary: int, capacity: int) -> None:
        self._model = model
        self._chain = chain
        self._vocabulary = vocabulary
        self._capacity = capacity
        self.exhausted = False
        """Whether the context has outgrown the draft, which then proposes nothing."""

    def prefill(self, prompt: Sequence[int]) -> None:
        """See `Drafter.prefill`. What the cache already holds of it is not read again."""
        readable = self._readable(prompt[:-1])
        keep_shared(self._model, readable)
        if len(prompt) <= self._capacity:
            self._model.extend(readable[self._model.length :], rows=0)

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        """See `Drafter.propose`. The last drafted token is left for the next round to evaluate."""
        proposal = Proposal(source=self.name)
        self.exhausted = len(context) > self._capacity
        if self.exhausted:
            return proposal
        unseen = self._readable(context[self._model.length :])
        while (self.is_free or not enough(proposal)) and self._model.length + len(unseen) <= self._capacity:
            row = self._model.extend(unseen, rows=1)[0][: self._vocabulary]
            try:
                q = self._chain.distribution(row, past)
            except NothingAllowedError:  # a dead end for the draft, not for the target
                break
            confidence = confidence_of(q, row, past.mask)
            if self.is_free and enough(proposal.expecting(confidence)):
                break
            token = chance.draft(len(proposal.tokens), q)
            proposal = proposal.followed_by(token, q, confidence)
            past = past.followed_by(token)
            unseen = [token]
        return proposal

    def rewind(self, length: int) -> None:
        """See `Drafter.rewind`."""
        self._model.rewind(min(self._model.length, length))

    def _readable(self, tokens: Sequence[int]) -> list[int]:
        return [min(token, self._vocabulary - 1) for token in tokens]


def confidence_of(q: Distribution, row: Logits, mask: Mask | None, ids: Ids | None = None) -> float:
    """Σ q², the chance that two draws of q agree; the model's own share of its best token where q has no other.

    `row` [n] are the logits of `ids`, or of 0..n-1. Shares are among what `mask` allows of the `LIKELIEST`.
    """
    if q.certain is None:
        return q.collision
    if mask is not None:
        few = top_k_ids(row, LIKELIEST)
        row = row[few[mask.allowed(few if ids is None else ids[few])]]
    best = row.max(initial=-np.inf)
    return 1 / float(np.exp(row - best).sum()) if -np.inf < best < np.inf else 1.0
