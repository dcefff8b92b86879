from __future__ import annotations

import pytest

from specdec_cli.core.decode import Round
from specdec_cli.core.noise import Noise
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.core.verify import Kind
from tests.loops import UNFILTERED, plain, speculative
from tests.toys import by_context, by_last_token

P, Q = by_context(1, 5), by_context(2, 5)


@pytest.mark.parametrize("length", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("ends", [[], [4]])
@pytest.mark.parametrize("budget", [1, 2, 3, 50])
def test_counts_add_up_to_what_was_emitted(length: int, ends: list[int], budget: int) -> None:
    for seed in range(5):
        counters, emitted = Counters(), 0
        for round_ in speculative(P, Q, UNFILTERED, enough=length, ends=ends)((0,), budget, Noise(seed)):
            counters.add(round_)
            emitted += len(round_.tokens)
            assert counters.tokens == emitted == counters.accepted + counters.corrections + counters.bonus
            assert 0 <= counters.accepted <= counters.examined <= counters.drafted
            assert (sum(counters.drafted_at), sum(counters.accepted_at)) == (counters.drafted, counters.accepted)
            assert len(counters.drafted_at) == len(counters.accepted_at)
        assert emitted <= budget
        assert emitted == budget or ends


def test_rates_come_from_the_counts() -> None:
    counters = Counters()
    counters.add(Round(drafted=4, accepted=4, last=Kind.BONUS, tokens=(1,) * 5, overlaps=(0.5,) * 4))
    counters.add(Round(drafted=3, accepted=1, last=Kind.CORRECTION, tokens=(1, 2), overlaps=(1.0, 0.1)))
    counters.add(Round(drafted=0, accepted=0, last=Kind.BONUS, tokens=(1,), overlaps=()))
    assert (counters.rounds, counters.drafted, counters.accepted, counters.examined) == (3, 7, 5, 6)
    assert (counters.corrections, counters.bonus, counters.tokens) == (1, 2, 8)
    assert counters.alpha == 5 / 6
    assert counters.expected_alpha == pytest.approx(3.1 / 6)
    assert counters.acceptance_rate == 5 / 7
    assert counters.tokens_per_round == 8 / 3
    assert (counters.drafted_at, counters.accepted_at) == ([2, 2, 2, 1], [2, 1, 1, 1])


def test_sums_of_runs_are_the_counts_of_all_their_rounds() -> None:
    rounds = [
        Round(drafted=4, accepted=4, last=Kind.BONUS, tokens=(1,) * 5, overlaps=(0.5,) * 4, source="a"),
        Round(drafted=3, accepted=1, last=Kind.CORRECTION, tokens=(1, 2), overlaps=(1.0, 0.1), source="b"),
        Round(drafted=1, accepted=1, last=Kind.BONUS, tokens=(1, 2), overlaps=(1.0,), source="a"),
    ]
    whole, total = Counters(), Counters()
    for round_ in rounds:
        part = Counters()
        part.add(round_)
        whole.add(round_)
        total.include(part)
    assert total == whole
    seconds = Timing(load=1, draft=2)
    seconds.include(Timing(draft=3, total=4))
    assert seconds == Timing(load=1, draft=5, total=4)


def test_rates_are_none_where_nothing_was_counted() -> None:
    counters = Counters()
    assert counters.tokens_per_round is None
    for round_ in plain(P, UNFILTERED)((0,), 5, Noise(1)):
        counters.add(round_)
    assert (counters.alpha, counters.expected_alpha, counters.acceptance_rate) == (None, None, None)
    assert counters.tokens_per_round == 1


def test_the_mean_overlap_estimates_alpha() -> None:
    counters = Counters()
    target, draft = by_last_token([[1.0, 0.2, -0.5]] * 3), by_last_token([[0.2, 1.2, 0.3]] * 3)
    for round_ in speculative(target, draft, UNFILTERED, enough=3)((0,), 4000, Noise(3)):
        counters.add(round_)
    assert counters.alpha is not None
    assert counters.expected_alpha == pytest.approx(counters.alpha, abs=0.06)
