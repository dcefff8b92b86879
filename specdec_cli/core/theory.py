"""What speculation should bring, from how often a guess is right and what a round costs.

Source: Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding", section 3, with the
measured cost of a pass over several tokens in place of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specdec_cli.core.costs import Costs

Reason = Literal["verification too dear", "draft too slow", "draft too wrong"]


def expected_tokens(alpha: float, length: int) -> float:
    """Tokens a round with `length` drafted ones, of which each is kept with chance `alpha` if those before it are."""
    return length + 1.0 if alpha == 1 else (1 - alpha ** (length + 1)) / (1 - alpha)


def speed_up(alpha: float, costs: Costs, source: str, length: int) -> float:
    """Over plain decoding, of always drafting `length` tokens."""
    return expected_tokens(alpha, length) / (costs.verify(length + 1) + costs.draft(source, length, 1))


def best_length(alpha: float, costs: Costs, source: str, longest: int) -> tuple[int, float]:
    """The draft length of 1 to `longest` that is fastest, and its speed-up."""
    length = max(range(1, longest + 1), key=lambda length: speed_up(alpha, costs, source, length))
    return length, speed_up(alpha, costs, source, length)


def needed_alpha(costs: Costs, source: str, longest: int) -> float | None:
    """The least α at which drafting 1 to `longest` tokens is as fast as plain decoding; None if none is."""
    if best_length(1.0, costs, source, longest)[1] < 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        pays = best_length(middle, costs, source, longest)[1] >= 1
        low, high = (low, middle) if pays else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class Loss:
    """Why drafting does not pay: the best `length` above 0, its `speed_up`, and the `reason`.

    `needed` is the α that would do, None if none would.
    """

    length: int
    speed_up: float
    reason: Reason
    needed: float | None


def find_loss(alpha: float, costs: Costs, source: str, longest: int) -> Loss | None:
    """What stands in the way, if even the best length of 1 to `longest` is slower than plain decoding.

    Verification is, if drafts that cost nothing and are always right would not help; the cost of drafting is, if such
    as are always right would not, or if the same ones would pay if they cost nothing; else it is how often they are
    wrong.
    """
    length, reached = best_length(alpha, costs, source, longest)
    if reached >= 1:
        return None
    free, needed = Costs(costs.target), needed_alpha(costs, source, longest)
    if best_length(1.0, free, source, longest)[1] < 1:
        return Loss(length, reached, "verification too dear", None)
    pays_if_free = best_length(alpha, free, source, longest)[1] >= 1
    reason: Reason = "draft too slow" if needed is None or pays_if_free else "draft too wrong"
    return Loss(length, reached, reason, needed)
