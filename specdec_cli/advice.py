"""Whether drafting paid, in one sentence with the number, if it did not."""

from __future__ import annotations

from typing import Final

from specdec_cli.core.costs import Costs
from specdec_cli.core.stats import Counters
from specdec_cli.core.theory import Loss, find_loss, needed_alpha
from specdec_cli.limits import DraftTokens

ENOUGH: Final = 10
"""Examined tokens from which α means something."""
HARD: Final = 0.5
"""α that is more than many drafts reach."""


def advise(counters: Counters, costs: Costs, source: str, length: DraftTokens, longest: int) -> str | None:
    """Why drafting by `source`, `length` tokens a round or up to `longest`, does not pay; None if it does."""
    if length != "auto":
        return _of_fixed(counters, costs, source)
    if counters.alpha is not None and counters.examined >= ENOUGH:
        return _in_words(find_loss(counters.alpha, costs, source, longest), counters.alpha, costs, source)
    needed = needed_alpha(costs, source, longest)
    if needed is None:
        return _in_words(find_loss(1.0, costs, source, longest), 1.0, costs, source)
    if needed < HARD or counters.rounds < ENOUGH:
        return None
    return f"little was drafted: here it pays only if {needed:.0%} of the guesses are right"


def to_reason(loss: Loss, alpha: float, costs: Costs, source: str) -> str:
    """What stands in the way of `source`, of whose guesses the share `alpha` is right, in one clause."""
    checked = loss.length + 1
    if loss.reason == "verification too dear":
        return f"checking {checked} tokens takes {costs.verify(checked):.1f} plain steps"
    if loss.reason == "draft too slow":
        return f"a drafted token takes {costs.draft(source, 1, 1):.2f} of a plain step"
    return f"{alpha:.0%} of the guesses are right, and {loss.needed:.0%} would have to be"


def _in_words(loss: Loss | None, alpha: float, costs: Costs, source: str) -> str | None:
    if loss is None:
        return None
    return (
        f"drafting does not pay here: {to_reason(loss, alpha, costs, source)}, so it would reach"
        f" {loss.speed_up:.2f} × plain decoding at best"
    )


def _of_fixed(counters: Counters, costs: Costs, source: str) -> str | None:
    """By what rounds brought and what blocks of their mean length cost."""
    if counters.examined < ENOUGH or counters.tokens_per_round is None:
        return None
    drafted = round(counters.drafted / counters.rounds)
    cost = costs.verify(drafted + 1) + costs.draft(source, drafted, 1)
    if counters.tokens_per_round >= cost:
        return None
    return (
        f"drafting loses here: a round brought {counters.tokens_per_round:.1f} tokens and cost {cost:.1f} plain steps;"
        " -k auto drafts as much as pays"
    )
