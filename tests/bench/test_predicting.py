"""What theory says of rounds, worked out by hand."""

from __future__ import annotations

import pytest

from specdec_cli.bench.predicting import Block, Sampling, classic, predict, to_blocks
from tests.bench.answers import COSTS, plain_rounds, round_of

FREE = Sampling(0.0, 0.0)


def test_a_draft_reads_its_own_last_token_after_a_block_that_was_kept_whole() -> None:
    rounds = [round_of(2, 2), round_of(2, 1), round_of(2, 0)]
    assert [block.unseen for block in to_blocks(rounds)] == [1, 2, 1]


def test_a_draft_that_sat_out_reads_what_came_meanwhile() -> None:
    rounds = [round_of(3, 3, source="lookup"), *plain_rounds(2), round_of(1, 1), round_of(1, 1)]
    assert list(to_blocks(rounds))[3:] == [Block("model", 1, 7), Block("model", 1, 2)]


def test_a_prediction_is_tokens_over_plain_steps() -> None:
    blocks = [Block("model", 2, 1)]
    assert predict(blocks, 0.5, COSTS, FREE) == pytest.approx((1 + 0.5 + 0.25) / (1.4 + 2 * 0.1))


def test_what_the_draft_catches_up_on_costs() -> None:
    assert predict([Block("model", 2, 2)], 0.5, COSTS, FREE) == pytest.approx(1.75 / (1.4 + 0.15 + 0.1))


def test_rounds_of_different_lengths_count_by_their_time() -> None:
    blocks = [Block("model", 2, 1), Block("model", 0, 1)]
    assert predict(blocks, 0.5, COSTS, FREE) == pytest.approx((1.75 + 1) / (1.6 + 1))


def test_the_sampler_slows_both_sides() -> None:
    sampling = Sampling(plain=0.1, ours=0.3)
    assert predict([Block("model", 2, 1)], 0.5, COSTS, sampling) == pytest.approx(1.75 * 1.1 / (1.6 + 0.3))


def test_a_drafter_without_a_model_costs_only_its_check() -> None:
    assert predict([Block("lookup", 2, 1)], 0.5, COSTS, FREE) == pytest.approx(1.75 / 1.4)


@pytest.mark.parametrize(("alpha", "c", "expected"), [(0.75, 0.02, 3.2), (0.80, 0.04, 3.3), (0.82, 0.11, 2.5)])
def test_the_classic_formula_is_that_of_leviathan_et_al(alpha: float, c: float, expected: float) -> None:
    assert classic(alpha, c, [7]) == pytest.approx(expected, abs=0.05)


def test_the_classic_formula_takes_the_lengths_of_all_rounds() -> None:
    assert classic(0.5, 0.1, [2, 0]) == pytest.approx(2.75 / 2.2)
