"""The audit's own laws agree with the engine's on any p and q, though they share no line with them."""

from __future__ import annotations

import numpy as np
import pytest

from specdec_cli.audit.laws import distance, probabilities, residual, softmax
from specdec_cli.core.distribution import Distribution
from tests.engine import UNFILTERED

SIZE = 300


def random_law(seed: int) -> Distribution:
    return Distribution.of(np.random.default_rng(seed).gamma(0.3, size=SIZE).astype(np.float32))


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_the_residual_is_the_engines(share: float) -> None:
    p, q = random_law(1), random_law(2)
    ours = residual(probabilities(p, SIZE), probabilities(q, SIZE), share)
    assert distance(ours, probabilities(p.residual(q, share), SIZE)) < 1e-5


def test_an_empty_residual_is_p() -> None:
    p = probabilities(random_law(1), SIZE)
    assert distance(residual(p, p), p) == 0


def test_the_softmax_is_the_chain_at_temperature_1() -> None:
    logits = np.random.default_rng(3).normal(0, 4, SIZE).astype(np.float32)
    exact = softmax(logits, np.empty(0, np.intp))
    assert distance(exact, probabilities(UNFILTERED.distribution(logits), SIZE)) < 1e-5
    assert softmax(logits, np.array([5]))[5] == 0


def test_a_sparse_distribution_has_its_places() -> None:
    law = probabilities(Distribution.of(np.array([1.0, 3.0]), np.array([2, 7])), 9)
    assert law.tolist() == [0, 0, 0.25, 0, 0, 0, 0, 0.75, 0]
