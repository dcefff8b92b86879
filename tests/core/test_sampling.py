"""The sampling chain against its plain form, and at the edges of its options and of its input."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from specdec_cli.core.sampling import SamplingChain
from specdec_cli.core.top_k import Logits
from specdec_cli.errors import ModelError, UsageError
from tests.core.reference import chain_law
from tests.enumeration import support
from tests.loops import UNFILTERED

GREEDY = [0, 1e-300, 1e-8, 1e-6, 1e-4]
CHAINS = [
    UNFILTERED,
    SamplingChain(),
    SamplingChain(temperature=2.5),
    SamplingChain(temperature=1e-3),
    *(replace(UNFILTERED, top_k=k) for k in (2, 3, 127, 128, 999)),
    *(replace(UNFILTERED, top_p=p) for p in (0.05, 0.5, 0.9, 0.999)),
    *(replace(UNFILTERED, min_p=p) for p in (1e-6, 0.05, 0.5)),
    SamplingChain(temperature=0.6, top_k=20, top_p=0.8, min_p=0.1),
    SamplingChain(temperature=1.4, top_k=0, top_p=0.9, min_p=0.02),
    SamplingChain(temperature=0.9, top_k=15, top_p=1, min_p=0.2),
]


def row(size: int, *, spread: float = 3, seed: int = 0) -> Logits:
    logits: Logits = np.random.default_rng([seed, size]).normal(4, spread, size).astype(np.float32)
    logits.flags.writeable = False
    return logits


@pytest.mark.parametrize("chain", CHAINS, ids=str)
@pytest.mark.parametrize("size", [2, 40, 128, 700])
@pytest.mark.parametrize("spread", [0.3, 3])
def test_the_chain_equals_its_plain_form(chain: SamplingChain, size: int, spread: float) -> None:
    logits = row(size, spread=spread)
    law = dict(support(chain.distribution(logits)))
    expected = {token: chance for token, chance in chain_law(chain, logits).items() if chance > 1e-40}
    assert {token for token, chance in law.items() if chance > 1e-40} == expected.keys()
    assert law == pytest.approx(law | expected, rel=2e-5, abs=1e-9)


@pytest.mark.parametrize("share", [0.2, 0.9, 0.9999])
@pytest.mark.parametrize("spread", [0.01, 1.5])
def test_a_nucleus_of_thousands_of_tokens_is_found(share: float, spread: float) -> None:
    logits = row(5000, spread=spread)
    chain = replace(UNFILTERED, top_p=share)
    told, expected = chain.distribution(logits), chain_law(chain, logits)
    assert told.ids is not None
    assert abs(told.ids.size - len(expected)) <= 1, "float32 may move the edge by a token"
    assert set(told.ids.tolist()) <= expected.keys() or set(told.ids.tolist()) >= expected.keys()


def test_ids_of_a_filtered_distribution_ascend() -> None:
    for chain in CHAINS:
        ids = chain.distribution(row(700)).ids
        assert ids is None or np.all(np.diff(ids) > 0)


@pytest.mark.parametrize("temperature", GREEDY)
@pytest.mark.parametrize("chain", [UNFILTERED, SamplingChain()])
def test_tiny_temperatures_are_greedy_with_the_lowest_id_of_a_tie(temperature: float, chain: SamplingChain) -> None:
    logits = np.array([0, 3, -np.inf, 3, 2.9999998], np.float32)
    assert support(replace(chain, temperature=temperature).distribution(logits)) == [(1, 1.0)]


def test_the_coldest_sampled_temperature_agrees_with_greedy_unless_the_best_tie() -> None:
    logits = row(700)
    told = replace(UNFILTERED, temperature=1.01e-4).distribution(logits)
    assert told.at(int(logits.argmax())) > 0.999999


def test_top_k_of_one_is_greedy() -> None:
    assert support(replace(UNFILTERED, top_k=1).distribution(row(300))) == [(int(row(300).argmax()), 1.0)]
    assert replace(UNFILTERED, top_k=1).greedy


@pytest.mark.parametrize("chain", [replace(UNFILTERED, top_p=0), replace(UNFILTERED, min_p=1)])
def test_the_tightest_filters_leave_the_best_token(chain: SamplingChain) -> None:
    assert support(chain.distribution(row(300))) == [(int(row(300).argmax()), 1.0)]


def test_a_top_k_above_the_vocabulary_filters_nothing() -> None:
    everything, nothing = replace(UNFILTERED, top_k=999999).distribution(row(300)), UNFILTERED.distribution(row(300))
    assert np.array_equal(everything.weights, nothing.weights)


@pytest.mark.parametrize("chain", [*CHAINS, SamplingChain(temperature=0)], ids=str)
@pytest.mark.parametrize("size", [6, 300])
def test_minus_infinity_is_never_possible_and_plus_infinity_alone_is(chain: SamplingChain, size: int) -> None:
    logits = row(size).copy()
    logits[::2] = -np.inf
    below = {token for token, _ in support(chain.distribution(logits))}
    assert below <= set(range(1, size, 2))
    logits[3] = np.inf
    assert support(chain.distribution(logits)) == [(3, 1.0)]


@pytest.mark.parametrize("chain", [*CHAINS, SamplingChain(temperature=100)], ids=str)
def test_the_ends_of_float32_are_numbers_like_any_other(chain: SamplingChain) -> None:
    logits = np.array([-3.4e38, 3.4e38, 0, -0.0, 1e-45], np.float32)
    assert support(chain.distribution(logits)) == [(1, 1.0)]
    assert all(math.isfinite(chance) for _, chance in support(chain.distribution(-logits)))


@pytest.mark.parametrize("chain", [*CHAINS, SamplingChain(temperature=0)], ids=str)
@pytest.mark.parametrize("bad", [[1, np.nan, 2], [np.nan, np.inf, 0], [-np.inf] * 3, [np.nan] * 3])
def test_logits_that_are_not_numbers_are_an_error_of_the_model(chain: SamplingChain, bad: list[float]) -> None:
    with pytest.raises(ModelError, match="not numbers"):
        chain.distribution(np.array(bad * 50, np.float32))


def test_the_defaults_are_those_of_llama_cpp() -> None:
    assert SamplingChain() == SamplingChain(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05)


def test_filters_judge_the_probabilities_before_temperature() -> None:
    logits = np.array([0, -1, -2, -8], np.float32)
    for temperature in (0.3, 1, 5):
        told = SamplingChain(temperature=temperature, top_k=0, top_p=1, min_p=0.1).distribution(logits)
        assert [token for token, _ in support(told)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("option", "limits", "values"),
    [
        ("temperature", "0..100", [-1, -1e-9, 100.1, math.nan, math.inf]),
        ("top_k", "below 0", [-1]),
        ("top_p", "0..1", [-0.1, 1.5, math.nan]),
        ("min_p", "0..1", [-0.1, 1.5, math.nan]),
    ],
)
def test_a_value_outside_its_range_names_option_and_range(option: str, limits: str, values: list[float]) -> None:
    for value in values:
        with pytest.raises(UsageError) as caught:
            SamplingChain(**{option: value})  # type: ignore[arg-type]
        assert f"--{option.replace('_', '-')} {value:g} " in caught.value.message
        assert limits in caught.value.message


@pytest.mark.parametrize("value", [0, 100])
def test_the_ends_of_the_temperature_range_are_inside(value: float) -> None:
    assert SamplingChain(temperature=value).distribution(row(5)).total > 0
