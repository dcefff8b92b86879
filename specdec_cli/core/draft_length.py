"""When a block is long enough. A rule sees the drafted prefix only, never the token that would come next."""

from __future__ import annotations

from dataclasses import dataclass

from specdec_cli.core.verify import Proposal


@dataclass(frozen=True, slots=True)
class FixedLength:
    """Draft `tokens` in every round; 0 drafts nothing."""

    tokens: int

    def __call__(self, proposal: Proposal) -> bool:
        """Whether `proposal` is long enough."""
        return len(proposal.tokens) >= self.tokens
