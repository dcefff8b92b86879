from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_cli.core.top_k import Logits, top_k_ids

SIZES = [1, 5, 127, 128, 129, 300, 1280, 1285]


def sorted_ids(logits: Logits, k: int) -> list[int]:
    """The same by sorting everything: largest first, lowest id first among equals."""
    return sorted(range(logits.size), key=lambda token: (-logits[token], token))[:k]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("k", [1, 2, 9, 10, 11, 127, 128, 300, 10**6])
def test_the_k_largest_come_out_in_the_order_of_a_full_sort(size: int, k: int) -> None:
    rng = np.random.default_rng([size, k])
    for distinct in (2, 7, 10**6):
        logits = (rng.integers(0, distinct, size) / 7).astype(np.float32)
        assert top_k_ids(logits, k).tolist() == sorted_ids(logits, k)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("k", [1, 3, 40, 500])
def test_infinite_logits_are_ranked_like_any_other(size: int, k: int) -> None:
    logits = np.random.default_rng(size).choice([-np.inf, np.inf, 0.5, -3e38], size, p=[0.8, 0.05, 0.1, 0.05])
    row = logits.astype(np.float32)
    assert top_k_ids(row, k).tolist() == sorted_ids(row, k)


@pytest.mark.parametrize("place", [0, 1186, 1187, 75968, 151935])
def test_the_largest_of_a_real_vocabulary_is_found_wherever_it_is(place: int) -> None:
    logits = np.random.default_rng(1).normal(size=151936).astype(np.float32)
    logits[place] = 9
    best = np.argsort(-logits, kind="stable")
    assert best[0] == place
    for k in (1, 40, 1187, 1188):
        assert np.array_equal(top_k_ids(logits, k), best[:k])


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=400), st.integers(1, 410))
def test_any_row_and_any_k_agree_with_a_full_sort(values: list[float], k: int) -> None:
    logits = np.array(values, np.float32)
    assert top_k_ids(logits, k).tolist() == sorted_ids(logits, k)


def test_a_row_that_is_only_read_may_be_read_only() -> None:
    logits = np.arange(300, dtype=np.float32)
    logits.flags.writeable = False
    assert top_k_ids(logits, 2).tolist() == [299, 298]
