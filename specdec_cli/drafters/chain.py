"""Several drafters in order: the first that is sure of its next token drafts the round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from specdec_cli.core.decode import Drafter, StopRule
from specdec_cli.core.noise import Chance
from specdec_cli.core.past import Past
from specdec_cli.core.verify import Proposal

CONFIDENT: Final = 0.5
"""The confidence of its first token that a drafter needs to win a round: right more often than not, which a lookup
match is from 3 tokens on. Replayed before models that are right 65 or 80 % of the time, 3 did like 2 and beat 5."""


class ExhaustibleDrafter(Drafter, Protocol):
    """A drafter that a context may outgrow."""

    @property
    def exhausted(self) -> bool:
        """Whether the context has outgrown it, so that it proposes nothing any more."""
        ...


class ChainDrafter:
    """Asks `drafters` in order. The last need not be sure; if it has nothing either, the first unsure token is tried.

    Exact whatever they are: whose block it is depends on confidences of first tokens, and so on the context alone.
    A block is never dropped for the tokens that were drawn.
    """

    def __init__(self, drafters: Sequence[ExhaustibleDrafter]) -> None:
        self.name: Final = ",".join(drafter.name for drafter in drafters)
        self._drafters = drafters

    @property
    def exhausted(self) -> bool:
        """Whether the context has outgrown one of them; the others go on."""
        return any(drafter.exhausted for drafter in self._drafters)

    def prefill(self, prompt: Sequence[int]) -> None:
        """See `Drafter.prefill`."""
        for drafter in self._drafters:
            drafter.prefill(prompt)

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        """See `Drafter.propose`. The proposal's `source` is who drafted it."""
        *earlier, last = self._drafters
        unsure: list[Proposal] = []
        for drafter in earlier:
            proposal = drafter.propose(context, past, _while_sure(enough), chance)
            if proposal.tokens and _is_sure(proposal):
                return proposal
            unsure += [proposal] if proposal.tokens else []
        proposal = last.propose(context, past, enough, chance)
        return unsure[0] if unsure and not proposal.tokens else proposal

    def rewind(self, length: int) -> None:
        """See `Drafter.rewind`."""
        for drafter in self._drafters:
            drafter.rewind(length)


def _is_sure(proposal: Proposal) -> bool:
    return proposal.confidences[0] >= CONFIDENT


def _while_sure(enough: StopRule) -> StopRule:
    """`enough`, and one token is where the first is unsure: more of a block that will hardly win would be wasted."""
    return lambda proposal: (bool(proposal.tokens) and not _is_sure(proposal)) or enough(proposal)
