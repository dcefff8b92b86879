"""A small language model with another vocabulary as the draft.

It proposes what both have as one token: its distribution restricted to that, renormalised *before* a token is
drawn, in the target's ids. That is the true q, so every rule stays exact whatever the two vocabularies are.
Source: Timor et al. 2025, "Accelerating LLM Inference with Lossless Speculative Decoding Algorithms for
Heterogeneous Vocabularies", token-level intersection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from specdec_cli.core.cached import keep_shared
from specdec_cli.core.decode import Model, StopRule
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance
from specdec_cli.core.past import Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.masking import NothingAllowedError
from specdec_cli.core.top_k import Logits
from specdec_cli.core.translation import Transcript, Translator
from specdec_cli.core.verify import Proposal
from specdec_cli.drafters.model import confidence_of
from specdec_cli.errors import UsageError


class TranslatedDrafter:
    """Draws every token from the draft's shared tokens, after the target's sampling chain on the target's ids.

    `to_target[x]` is the target's id of draft token x, -1 for none; `translator` gives the draft's tokens for the
    target's. `vocabulary` is the number of the target's ids, `capacity` how many tokens the draft's cache can hold.
    """

    name: Final = "model"

    def __init__(
        self,
        model: Model,
        chain: SamplingChain,
        translator: Translator,
        *,
        to_target: Sequence[int],
        vocabulary: int,
        capacity: int,
    ) -> None:
        self._model = model
        self._chain = chain
        self._translator = translator
        self._transcript = Transcript()
        targets = np.asarray(to_target, np.intp)
        self._shared = np.flatnonzero(targets >= 0)  # [shared], in the draft's ids
        self._ids = targets[self._shared]  # [shared], in the target's
        self._row = np.full(vocabulary, -np.inf, np.float32)
        self._capacity = capacity
        self.exhausted = False
        """Whether the context has outgrown the draft, which then proposes nothing."""

    def prefill(self, prompt: Sequence[int]) -> None:
        """See `Drafter.prefill`. The prompt is cut into tokens as the draft's own tokenizer does it."""
        self._begin(prompt)
        for step in self._translator.at_once(prompt[self._transcript.length :]):
            self._transcript.append(step)
        keep_shared(self._model, self._transcript.tokens[:-1])
        if len(self._transcript.tokens) <= self._capacity:
            self._model.extend(self._transcript.tokens[self._model.length : -1], rows=0)

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        """See `Drafter.propose`. The last drafted token is left for the next round to evaluate."""
        proposal = Proposal(source=self.name)
        if self.exhausted:
            return proposal
        self._begin(context)
        for step in self._translator.one_by_one(context[self._transcript.length :]):
            self._transcript.append(step)
        while not enough(proposal) and self._has_room():
            logits = self._read()
            q = self._law(logits, past)
            if q is None:
                break
            token = chance.draft(len(proposal.tokens), q)
            proposal = proposal.followed_by(token, q, confidence_of(q, logits, past.mask, self._ids))
            past = past.followed_by(token)
            self._transcript.append((1, self._translator.read(token)))
        return proposal

    def rewind(self, length: int) -> None:
        """See `Drafter.rewind`."""
        self._transcript.cut(length)
        self._model.rewind(min(self._model.length, len(self._transcript.tokens)))

    def _begin(self, context: Sequence[int]) -> None:
        if self._transcript.is_new:
            self._transcript.append(self._translator.begin(context))

    def _has_room(self) -> bool:
        """Whether there is something to read, and the draft can hold it."""
        length = len(self._transcript.tokens)
        self.exhausted = length > self._capacity
        return 0 < length <= self._capacity

    def _read(self) -> Logits:
        """The draft's logits [shared] after all of the transcript; its last token again if all is evaluated."""
        tokens = self._transcript.tokens
        self._model.rewind(min(self._model.length, len(tokens) - 1))
        return self._model.extend(tokens[self._model.length :], rows=1)[0][self._shared]

    def _law(self, logits: Logits, past: Past) -> Distribution | None:
        """What the draft draws from; None at a dead end for the draft, which need not be one for the target."""
        if logits.max(initial=-np.inf) == -np.inf:
            return None
        self._row[self._ids] = logits
        try:
            return self._chain.distribution(self._row, past)
        except (NothingAllowedError, UsageError):  # the mask forbids, or a bias bans, all that is shared
            return None
