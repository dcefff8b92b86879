"""`Distribution` against slow float64 arithmetic, in all its shapes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from specdec_cli.core.distribution import Distribution, column_sums
from tests.loops import UNFILTERED

SIZES = [1, 2, 127, 128, 129, 256, 300, 1280, 1281]
LAST_UNIFORM = 1 - 2.0**-53
Probabilities = npt.NDArray[np.float64]


def random_weights(size: int, seed: int = 0, zeros: float = 0.3) -> npt.NDArray[np.float32]:
    rng = np.random.default_rng([seed, size])
    weights = np.exp(rng.normal(0, 3, size)) * (rng.random(size) >= zeros)
    weights[rng.integers(size)] = 1
    return weights.astype(np.float32)


def to_array(p: Distribution, size: int) -> Probabilities:
    """The probabilities of 0..size-1, the slow way."""
    full = np.zeros(size)
    full[np.arange(p.weights.size) if p.ids is None else p.ids] = p.weights
    return full / math.fsum(p.weights.tolist())


def samples(size: int) -> list[Distribution]:
    """One distribution of each shape over at most `size` tokens."""
    ids = np.sort(np.random.default_rng(size).permutation(size)[: max(1, size // 3)])
    return [
        Distribution.of(random_weights(size)),
        Distribution.of(random_weights(size, seed=1).astype(np.float64)),
        Distribution.of(random_weights(ids.size, seed=2).astype(np.float64), ids),
        Distribution.of(random_weights(max(1, size - 3), seed=3)),
        Distribution.one_hot(size - 1),
    ]


@pytest.mark.parametrize("size", SIZES)
def test_column_sums_count_every_weight_once(size: int) -> None:
    weights = random_weights(size)
    sums = column_sums(weights)
    assert sums.size == size // 128 + 1
    assert sums.sum() == pytest.approx(math.fsum(weights.tolist()), rel=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_at_is_the_share_of_the_weight_and_zero_elsewhere(size: int) -> None:
    for p in samples(size):
        assert [p.at(token) for token in range(size + 2)] == pytest.approx(to_array(p, size + 2), rel=1e-5)


def slow_draw(p: Distribution, uniform: float) -> int:
    """The first token, column by column in the order of `draw`, at which the running total exceeds the uniform's."""
    size = p.weights.size
    columns = 0 if p.ids is not None else size // 128
    order = [column + columns * row for column in range(columns) for row in range(128)]
    order += range(columns * 128, size)
    point, running = uniform * math.fsum(p.weights.tolist()), 0.0
    for index in order:
        running += float(p.weights[index])
        if running > point:
            break
    return index if p.ids is None else int(p.ids[index])


@pytest.mark.parametrize("size", SIZES)
def test_draw_inverts_the_cumulative_distribution(size: int) -> None:
    uniforms = np.random.default_rng(5).random(60)
    for p in samples(size):
        assert [p.draw(uniform) for uniform in uniforms] == [slow_draw(p, uniform) for uniform in uniforms]


@pytest.mark.parametrize("size", SIZES)
def test_evenly_spaced_uniforms_draw_each_token_as_often_as_it_is_likely(size: int) -> None:
    spaced = (np.arange(2000) + 0.5) / 2000
    for p in samples(size):
        counts = np.bincount([p.draw(uniform) for uniform in spaced], minlength=size)
        assert np.abs(counts - 2000 * to_array(p, size)).max() <= 1.01


def test_a_vocabulary_of_real_size_is_drawn_from_in_full() -> None:
    size = 151936
    p = Distribution.of(random_weights(size))
    for token in (0, 1186, 1187, 1188, 75968, size - 1):
        weights = np.zeros(size, np.float32)
        weights[token] = 1e-3
        assert Distribution.of(weights).draw(0.7) == token
    drawn = [p.draw(uniform) for uniform in np.random.default_rng(6).random(300)]
    assert [slow_draw(p, uniform) for uniform in np.random.default_rng(6).random(5)] == drawn[:5]
    assert all(p.at(token) > 0 for token in drawn)


@pytest.mark.parametrize("size", [1, 2, 5, 127, 128, 129, 300, 1280])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_token_of_weight_zero_is_never_drawn(size: int, sparse: bool) -> None:
    uniforms = [0.0, 5e-324, 0.5, LAST_UNIFORM, *(index / 16 for index in range(16))]
    ids = np.arange(size) * 2 if sparse else None
    rng = np.random.default_rng(size)
    for _ in range(30):
        weights = rng.random(size).astype(np.float32)
        weights[: rng.integers(size)] = 0
        weights[size - rng.integers(size) :] = 0
        weights[rng.integers(size)] = rng.choice([1e-38, 0.3, 1e30])
        p = Distribution.of(weights, ids)
        assert all(p.at(p.draw(uniform)) > 0 for uniform in uniforms)


def test_a_total_that_was_rounded_up_does_not_lead_past_the_last_token() -> None:
    weights = np.array([0.0, 0.3, 0.7, 0.0])
    for ids in (None, np.array([2, 4, 6, 8])):
        rounded_up = replace(Distribution.of(weights, ids), total=1.0000001)
        assert rounded_up.draw(LAST_UNIFORM) == (2 if ids is None else 6)


@pytest.mark.parametrize("size", SIZES)
def test_overlap_is_the_sum_of_minima_whichever_way_round(size: int) -> None:
    for p in samples(size):
        for q in samples(size):
            expected = float(np.minimum(to_array(p, size), to_array(q, size)).sum())
            assert p.overlap(q) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_the_residual_is_what_p_has_more_than_q(size: int) -> None:
    for p in samples(size):
        for q in samples(size):
            left = np.maximum(0, to_array(p, size) - to_array(q, size))
            if left.sum() < 1e-3:
                continue
            assert to_array(p.residual(q), size) == pytest.approx(left / left.sum(), abs=2e-5)


def test_a_draft_that_knows_more_tokens_leaves_a_residual() -> None:
    p = Distribution.of(np.array([0.5, 0.5]))
    q = Distribution.of(np.array([0.5, 0.5]), np.array([0, 7]))
    assert to_array(p.residual(q), 2).tolist() == [0, 1]


@pytest.mark.parametrize("size", SIZES)
def test_equal_distributions_leave_p_itself_as_the_residual(size: int) -> None:
    for p, same in zip(samples(size), samples(size), strict=True):
        assert p.residual(same) is p
        assert p.overlap(same) == pytest.approx(1, abs=1e-6)


def test_the_inputs_of_overlap_and_residual_are_not_changed() -> None:
    for p in samples(300):
        for q in samples(300):
            before = p.weights.copy(), q.weights.copy()
            p.overlap(q)
            p.residual(q)
            assert np.array_equal(p.weights, before[0])
            assert np.array_equal(q.weights, before[1])


@pytest.mark.parametrize("size", [50, 32000, 151936])
@pytest.mark.parametrize("temperature", [0.05, 0.8, 1.0, 3.0])
@pytest.mark.parametrize("spread", [0.5, 4.0, 15.0])
def test_float32_probabilities_are_as_close_as_the_module_says(size: int, temperature: float, spread: float) -> None:
    logits = np.random.default_rng(7).normal(20, spread, size).astype(np.float32)
    exact = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    exact /= math.fsum(exact.tolist())
    p = replace(UNFILTERED, temperature=temperature).distribution(logits)
    told = p.weights.astype(np.float64) / p.total
    judged = exact > 1e-9
    assert (np.abs(told - exact)[judged] / exact[judged]).max() < 2e-5
    assert told.sum() == pytest.approx(1, abs=2e-5)
