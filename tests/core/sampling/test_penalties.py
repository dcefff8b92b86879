from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from specdec_cli.core.sampling.candidates import Candidates
from specdec_cli.core.sampling.penalties import biased, lowered, penalised

ROW = np.array([2, -2, 0, 1, -np.inf], np.float32)
ROW.flags.writeable = False


def whole(scale: float = 1.0) -> Candidates:
    return Candidates(None, ROW, 0, scale)


def after(tokens: Sequence[int], *, repeat: float = 1, presence: float = 0, frequency: float = 0) -> list[float]:
    told = penalised(whole(), tokens, repeat=repeat, presence=presence, frequency=frequency)
    return [float(logit) for logit in told.logits]


def test_repetition_divides_what_is_positive_and_multiplies_what_is_not() -> None:
    assert after([0, 1, 2], repeat=2) == [1, -4, 0, 1, -math.inf]


def test_presence_counts_once_and_frequency_each_time() -> None:
    assert after([3, 0, 3, 3], presence=0.5) == [1.5, -2, 0, 0.5, -math.inf]
    assert after([3, 0, 3, 3], frequency=0.5) == [1.5, -2, 0, -0.5, -math.inf]
    assert after([0, 0], repeat=2, presence=1, frequency=0.25) == [-0.5, -2, 0, 1, -math.inf]


def test_a_token_at_minus_infinity_stays_there_and_one_beyond_the_row_is_ignored() -> None:
    assert after([4, 5, 999], repeat=0.5, presence=-3) == ROW.tolist()


def test_the_temperature_before_the_penalties_does_not_scale_them() -> None:
    told = penalised(whole(2.0), [0], repeat=2, presence=0.25, frequency=0)
    assert told.logits[0] / told.scale == 2 / 2 / 2 - 0.25


def test_few_candidates_are_penalised_like_a_row_and_come_out_by_id() -> None:
    ranked = Candidates(np.array([7, 3, 9]), np.array([3, 2, 1], np.float32), 0, ranked=True)
    told = lowered(ranked, {7: 2.5, 9: 0.5, 8: 100.0, 1: 100.0})
    assert told.ids is not None
    assert (told.ids.tolist(), told.logits.tolist()) == ([3, 7, 9], [2, 0.5, 0.5])
    assert (told.best, told.ranked) == (2, False)


def test_nothing_to_penalise_leaves_the_same_candidates() -> None:
    candidates = whole()
    assert penalised(candidates, [], repeat=2, presence=0, frequency=0) is candidates
    assert lowered(candidates, {77: 1.0}) is candidates


@pytest.mark.parametrize(("penalty", "expected"), [(1e300, -3.4028234663852886e38), (-1e300, 3.4028234663852886e38)])
def test_a_penalty_beyond_float32_leaves_a_number(penalty: float, expected: float) -> None:
    assert lowered(whole(), {0: penalty}).logits[0] == expected


def test_bias_adds_and_minus_infinity_bans_whatever_the_logit() -> None:
    row = np.array([1, np.inf, -np.inf, 2], np.float32)
    told = biased(row, np.array([0, 1, 2, 3, 4]), np.array([1.5, -math.inf, 5, -1, 7]))
    assert told.tolist() == [2.5, -math.inf, -math.inf, 1]
    assert biased(row, np.array([1]), np.array([-5.0])).tolist() == row.tolist()
