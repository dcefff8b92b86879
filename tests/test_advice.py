"""Whether drafting paid: said where it did not, with a number that was measured, and else nothing."""

from __future__ import annotations

import pytest

from specdec_cli.advice import ENOUGH, advise
from specdec_cli.core.costs import Costs
from specdec_cli.core.stats import Counters
from specdec_cli.limits import DraftTokens


def curve(slope: float, draft: float = 0.0) -> Costs:
    return Costs(tuple(1 + slope * n for n in range(17)), {"model": (draft,) * 17} if draft else {})


def counted(rounds: int, drafted: int, accepted: int) -> Counters:
    """Blocks of one length, each ended by one rejection at most."""
    counters = Counters()
    counters.rounds, counters.drafted, counters.accepted = rounds, drafted, accepted
    counters.examined = min(drafted, accepted + rounds)
    counters.bonus = rounds
    return counters


@pytest.mark.parametrize(
    ("counters", "costs", "source", "said"),
    [
        (counted(40, 40, 36), curve(1.5), "lookup", "checking 2 tokens takes 2.5 plain steps"),
        (counted(40, 120, 100), curve(0.1, 1.2), "model", "a drafted token takes 1.20 of a plain step"),
        (counted(40, 40, 2), curve(0.2, 0.1), "model", "5% of the guesses are right"),
        (counted(40, 0, 0), curve(0.2, 1.5), "model", "a drafted token takes 1.50 of a plain step"),
        (counted(40, 3, 0), curve(0.9), "lookup", "only if 9"),
    ],
)
def test_an_adaptive_length_says_what_stands_in_the_way(
    counters: Counters, costs: Costs, source: str, said: str
) -> None:
    advice = advise(counters, costs, source, "auto", 16)
    assert advice is not None
    assert said in advice


@pytest.mark.parametrize(
    ("counters", "costs", "length"),
    [
        (counted(40, 160, 150), curve(0.1), "auto"),
        (counted(40, 0, 0), curve(0.1), "auto"),
        (counted(ENOUGH - 1, 0, 0), curve(0.9), "auto"),
        (counted(40, 160, 150), curve(0.1), 4),
        (counted(40, 4, 0), curve(2.0), 4),
    ],
)
def test_nothing_is_said_where_it_pays_or_too_little_is_known(
    counters: Counters, costs: Costs, length: DraftTokens
) -> None:
    assert advise(counters, costs, "lookup", length, 16) is None


def test_a_fixed_length_that_loses_is_told_by_what_a_round_brought_and_cost() -> None:
    advice = advise(counted(40, 160, 8), curve(0.5, 0.25), "model", 4, 16)
    assert advice is not None
    assert "a round brought 1.2 tokens and cost 4.0 plain steps" in advice
    assert "-k auto" in advice


def test_no_share_of_right_guesses_is_named_that_nobody_counted() -> None:
    advice = advise(counted(40, 3, 1), curve(0.2, 1.5), "model", "auto", 16)
    assert advice is not None
    assert "%" not in advice
