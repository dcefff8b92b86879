"""Entropies and likeliest tokens are those of a plain float64 sum and a plain sort."""

from __future__ import annotations

import numpy as np
import pytest

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.outline import FEW, RAREST, TINY, outline

SIZES = (1, 2, 7, FEW, FEW + 1, 5_000)


def _plain(law: Distribution, vocabulary: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([law.at(token) for token in range(vocabulary)], np.float64)


def _entropy(chances: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    real = chances[chances > 0]
    return float(-(real * np.log(real)).sum())


def _laws(size: int) -> list[Distribution]:
    """A dense and two sparse ones over `size` tokens, with zeros and equal weights among them."""
    generator = np.random.default_rng(size)
    weights = np.exp(generator.normal(0, 3, size)).astype(np.float32)
    weights[1::5] = 0
    weights[::7] = weights[0]
    ids = np.arange(size) * 3
    return [Distribution.of(weights), Distribution.of(weights, ids), Distribution.of(weights.astype(np.float64), ids)]


@pytest.mark.parametrize("kind", range(3))
@pytest.mark.parametrize("size", SIZES)
def test_the_entropy_is_that_of_a_plain_sum(size: int, kind: int) -> None:
    law = _laws(size)[kind]
    assert outline(law, 3).entropy == pytest.approx(_entropy(_plain(law, 3 * size)), abs=1e-4)


@pytest.mark.parametrize("kind", range(3))
@pytest.mark.parametrize("size", SIZES)
def test_the_likeliest_tokens_are_those_of_a_plain_sort(size: int, kind: int) -> None:
    law = _laws(size)[kind]
    chances = _plain(law, 3 * size)
    order = [int(token) for token in np.argsort(-chances, kind="stable")[:8] if chances[token] >= RAREST]
    found = outline(law, 8).likeliest
    assert [token for token, _ in found] == order
    assert [chance for _, chance in found] == pytest.approx([float(chances[token]) for token in order])


@pytest.mark.parametrize("size", [2, 5_000])
def test_a_token_that_hardly_ever_comes_is_none_of_the_likeliest(size: int) -> None:
    weights = np.full(size, 1e-7)
    weights[0] = 1
    law = Distribution.of(weights, np.arange(size))
    assert [token for token, _ in outline(law, 8).likeliest] == [0]
    assert outline(law, 8).at(1) == pytest.approx(law.at(1))


def test_a_law_without_a_likely_token_shows_the_first_of_its_likeliest() -> None:
    weights = np.ones(5_000, np.float32)
    weights[[17, 3_000]] = 1.5
    found = outline(Distribution.of(weights), 3).likeliest
    assert [token for token, _ in found] == [17, 3_000, 0]
    assert found[0][1] == pytest.approx(1.5 / 5_001)


@pytest.mark.parametrize("kind", range(3))
def test_a_probability_is_that_of_the_distribution(kind: int) -> None:
    for size in SIZES:
        law = _laws(size)[kind]
        shape = outline(law, 2)
        tokens = [0, 1, 3, 6, 3 * size]
        assert [shape.at(token) for token in tokens] == pytest.approx([law.at(token) for token in tokens])


def test_a_certain_token_has_no_entropy_and_no_company() -> None:
    sure = outline(Distribution.one_hot(5), 8)
    assert (sure.entropy, sure.likeliest, sure.at(5), sure.at(4)) == (0.0, ((5, 1.0),), 1.0, 0.0)


def test_an_even_law_over_a_large_vocabulary_has_the_logarithm_of_its_size() -> None:
    size = 151_936
    assert outline(Distribution.of(np.full(size, 0.3, np.float32)), 0).entropy == pytest.approx(np.log(size), abs=1e-4)


def test_no_likeliest_tokens_are_sorted_where_none_are_wanted() -> None:
    assert all(outline(law, 0).likeliest == () for size in SIZES for law in _laws(size))


def test_a_processor_that_takes_the_smallest_numbers_for_0_still_finds_a_logarithm() -> None:
    assert np.finfo(np.float32).smallest_normal <= TINY < 1e-37
