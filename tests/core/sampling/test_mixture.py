from __future__ import annotations

import numpy as np
import pytest

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.sampling.mixture import mixture
from tests.enumeration import support


def laws() -> dict[str, Distribution]:
    rng = np.random.default_rng(2)
    return {
        "a row": Distribution.of(rng.random(200).astype(np.float32)),
        "another row": Distribution.of(rng.random(200).astype(np.float32) ** 3),
        "few": Distribution.of(rng.random(3), np.array([2, 77, 150])),
        "other few": Distribution.of(rng.random(4) * 9, np.array([0, 77, 149, 150])),
        "one": Distribution.one_hot(149),
    }


@pytest.mark.parametrize("first", laws())
@pytest.mark.parametrize("second", laws())
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_mixture_gives_each_token_its_share_of_both(first: str, second: str, share: float) -> None:
    one, other = laws()[first], laws()[second]
    mixed = mixture(share, one, other)
    for token in range(200):
        assert mixed.at(token) == pytest.approx(share * one.at(token) + (1 - share) * other.at(token), abs=1e-7)
    assert sum(chance for _, chance in support(mixed)) == pytest.approx(1)
