"""The proofs have teeth: each wrong sampler fails the enumeration and the statistics that the right one passes."""

from __future__ import annotations

import pytest

from specdec_cli.core.noise import Noise
from tests.core.reference import chain_law, plain_law
from tests.enumeration import text_law, total_variation
from tests.loops import IN_FLOAT64, speculative
from tests.statistical import emitted, follows
from tests.toys import by_context, by_last_token
from tests.wrong_samplers import RIGHT, WRONG, Sampler

P, Q = by_context(1, 3), by_context(2, 3)
MEMORYLESS_P, MEMORYLESS_Q = by_last_token([[1.0, 0.2, -0.5, 0.4]] * 4), by_last_token([[0.2, 1.2, 0.3, -0.9]] * 4)


def bias(sampler: Sampler, length: int) -> float:
    """Total variation between the texts of `sampler` and those of the target, three tokens long."""
    loop = speculative(P, Q, IN_FLOAT64, enough=length, rule=sampler.rule, propose=sampler.propose)
    return total_variation(text_law(loop, (0,), 3), plain_law(P, IN_FLOAT64, (0,), 3))


def long_run(sampler: Sampler, seed: int) -> list[int]:
    """4000 independent tokens: neither toy looks at what came before."""
    loop = speculative(MEMORYLESS_P, MEMORYLESS_Q, IN_FLOAT64, enough=3, rule=sampler.rule, propose=sampler.propose)
    return emitted(loop((0,), 4000, Noise(seed)))


MEMORYLESS_LAW = chain_law(IN_FLOAT64, MEMORYLESS_P((0,)))


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("name", WRONG)
def test_enumeration_rejects_each_wrong_sampler(name: str, length: int) -> None:
    assert bias(WRONG[name], length) > 0.01


@pytest.mark.parametrize("length", [1, 2])
def test_enumeration_passes_the_right_sampler(length: int) -> None:
    assert bias(RIGHT, length) <= 1e-12


@pytest.mark.parametrize("name", WRONG)
def test_statistics_reject_each_wrong_sampler(name: str) -> None:
    assert not follows(long_run(WRONG[name], seed=1), MEMORYLESS_LAW)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_statistics_pass_the_right_sampler(seed: int) -> None:
    assert follows(long_run(RIGHT, seed), MEMORYLESS_LAW)
