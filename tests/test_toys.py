"""The toy model refuses what a real one would silently get wrong."""

from __future__ import annotations

import numpy as np
import pytest

from tests.toys import TableModel, by_context


def model() -> TableModel:
    made = TableModel(by_context(1, 4), capacity=6)
    made.extend([0, 1, 2], 1)
    return made


@pytest.mark.parametrize("length", [-1, 4])
def test_a_rewind_to_where_the_cache_never_was_is_refused(length: int) -> None:
    with pytest.raises(AssertionError, match="rewind"):
        model().rewind(length)


@pytest.mark.parametrize(("tokens", "rows"), [([1], 2), ([4], 1), ([-1], 1), ([1] * 4, 1)])
def test_an_illegal_pass_is_refused(tokens: list[int], rows: int) -> None:
    with pytest.raises(AssertionError):
        model().extend(tokens, rows)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_row_that_is_kept_too_long_is_poisoned(rows: int) -> None:
    toy = model()
    (row,) = toy.extend([3], 1)
    kept = row.copy()
    toy.extend([1, 1], rows)
    assert not np.array_equal(row, kept)
    assert rows == 1 or np.isnan(row).all()


def test_a_row_cannot_be_written_to() -> None:
    (row,) = model().extend([3], 1)
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1


def test_rows_follow_the_tokens_that_they_belong_to() -> None:
    logits = by_context(1, 4)
    rows = model().extend([3, 1, 0], 2)
    assert np.array_equal(rows[0], logits((0, 1, 2, 3, 1)))
    assert np.array_equal(rows[1], logits((0, 1, 2, 3, 1, 0)))
