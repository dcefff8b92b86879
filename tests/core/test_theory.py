from __future__ import annotations

import pytest

from specdec_cli.core.costs import Costs
from specdec_cli.core.theory import expected_tokens, find_loss, needed_alpha, speed_up


def curve(slope: float, draft: float) -> Costs:
    return Costs(tuple(1 + slope * n for n in range(17)), {"model": (draft,) * 17})


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9, 1.0])
def test_expected_tokens_are_the_sum_of_the_chances_to_get_that_far(alpha: float) -> None:
    assert expected_tokens(alpha, 5) == pytest.approx(sum(alpha**kept for kept in range(6)))


def test_a_speed_up_is_tokens_for_steps() -> None:
    assert speed_up(0.5, curve(0.1, 0.2), "model", 2) == pytest.approx(1.75 / (1.2 + 0.4))


@pytest.mark.parametrize(
    ("alpha", "costs", "reason"),
    [
        (0.9, curve(1.5, 0.1), "verification too dear"),
        (0.8, curve(0.1, 1.2), "draft too slow"),
        (0.05, curve(0.2, 0.1), "draft too wrong"),
    ],
)
def test_what_stands_in_the_way_is_named(alpha: float, costs: Costs, reason: str) -> None:
    loss = find_loss(alpha, costs, "model", 16)
    assert loss is not None
    assert loss.reason == reason
    assert loss.speed_up < 1


def test_where_drafting_pays_there_is_no_loss() -> None:
    assert find_loss(0.8, curve(0.1, 0.1), "model", 16) is None


def test_a_pass_beyond_what_was_measured_goes_on_in_a_line() -> None:
    costs = Costs((1.0, 1.5, 2.0), {"model": (0.2, 0.3)})
    assert costs.verify(5) == pytest.approx(3.0)
    assert costs.draft("model", 3, 4) == pytest.approx(0.2 * 2 + 0.5)
    assert costs.draft("lookup", 3, 1) == costs.draft("model", 0, 9) == 0


@pytest.mark.parametrize("slope", [0.1, 0.5, 0.9])
def test_the_share_that_is_needed_divides_what_pays_from_what_does_not(slope: float) -> None:
    costs = curve(slope, 0.1)
    needed = needed_alpha(costs, "model", 16)
    if needed is None:
        assert find_loss(1.0, costs, "model", 16) is not None
    else:
        assert find_loss(needed + 0.001, costs, "model", 16) is None
        assert find_loss(needed - 0.001, costs, "model", 16) is not None
