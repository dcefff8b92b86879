"""What the drafters that draw nothing have in common: they copy tokens, so their q is one-hot at any temperature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from specdec_cli.core.decode import StopRule
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.past import Past
from specdec_cli.core.verify import Proposal


def copied(source: str, guesses: Iterable[tuple[int, float]], past: Past, enough: StopRule) -> Proposal:
    """The block of `guesses`, tokens with their confidences, until `enough`, which knows the next one's beforehand.

    It ends before a token that a mask forbids, which the target would refuse.
    """
    proposal = Proposal(source=source)
    for token, confidence in guesses:
        proposal = proposal.expecting(confidence)
        if enough(proposal) or (past.mask is not None and not past.mask.allowed(np.array([token]))[0]):
            break
        proposal = proposal.followed_by(token, Distribution.one_hot(token), confidence)
        past = past.followed_by(token)
    return proposal


def continues(context: Sequence[int], read: Sequence[int], sure: int, *, start: int = 0) -> bool:
    """Whether `read` is in `context` from `start` on, given that its first `sure` tokens are."""
    return list(context[start + sure : start + len(read)]) == list(read[sure:])
