"""The sampling chain against its plain form, and at the edges of its options and of its input."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from specdec_cli.core.past import Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.order import DEFAULT_ORDER
from specdec_cli.core.top_k import Logits
from specdec_cli.errors import ModelError, UsageError
from tests.core.reference import chain_law
from tests.core.sampling.random_chains import random_case
from tests.enumeration import Law, support
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


def assert_same_law(told: Law[int], expected: Law[int]) -> None:
    """The same tokens, each as likely; those below the reach of float32 need not be there."""
    ids = [{token for token, chance in law.items() if chance > 1e-30} for law in (told, expected)]
    assert ids[0] == ids[1]
    assert all(abs(told[token] - expected[token]) <= 1e-6 for token in ids[0])


@pytest.mark.parametrize("chain", CHAINS, ids=range(len(CHAINS)))
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


@pytest.mark.parametrize("chain", [*CHAINS, SamplingChain(temperature=0)], ids=range(len(CHAINS) + 1))
@pytest.mark.parametrize("size", [6, 300])
def test_minus_infinity_is_never_possible_and_plus_infinity_alone_is(chain: SamplingChain, size: int) -> None:
    logits = row(size).copy()
    logits[::2] = -np.inf
    below = {token for token, _ in support(chain.distribution(logits))}
    assert below <= set(range(1, size, 2))
    logits[3] = np.inf
    assert support(chain.distribution(logits)) == [(3, 1.0)]


@pytest.mark.parametrize("chain", [*CHAINS, SamplingChain(temperature=100)], ids=range(len(CHAINS) + 1))
def test_the_ends_of_float32_are_numbers_like_any_other(chain: SamplingChain) -> None:
    logits = np.array([-3.4e38, 3.4e38, 0, -0.0, 1e-45], np.float32)
    assert support(chain.distribution(logits)) == [(1, 1.0)]
    assert all(math.isfinite(chance) for _, chance in support(chain.distribution(-logits)))


@pytest.mark.parametrize("chain", [*CHAINS, SamplingChain(temperature=0)], ids=range(len(CHAINS) + 1))
@pytest.mark.parametrize("bad", [[1, np.nan, 2], [np.nan, np.inf, 0], [-np.inf] * 3, [np.nan] * 3])
def test_logits_that_are_not_numbers_are_an_error_of_the_model(chain: SamplingChain, bad: list[float]) -> None:
    with pytest.raises(ModelError, match="not numbers"):
        chain.distribution(np.array(bad * 50, np.float32))


def test_the_defaults_are_those_of_llama_cpp() -> None:
    filters = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1.0, "top_n_sigma": 0.0}
    xtc = {"xtc_probability": 0.0, "xtc_threshold": 0.1}
    penalties = {"repeat_last_n": 64, "repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    dry = {"dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 64}
    rest = {"dry_breakers": {}, "logit_bias": (), "samplers": DEFAULT_ORDER}
    told = {each.name: getattr(SamplingChain(), each.name) for each in fields(SamplingChain) if each.init}
    assert told == {**filters, **xtc, **penalties, **dry, **rest}


def test_filters_judge_the_probabilities_before_temperature() -> None:
    logits = np.array([0, -1, -2, -8], np.float32)
    for temperature in (0.3, 1, 5):
        told = SamplingChain(temperature=temperature, top_k=0, top_p=1, min_p=0.1).distribution(logits)
        assert [token for token, _ in support(told)] == [0, 1, 2]


@pytest.mark.parametrize("shuffled", [False, True])
def test_any_chain_on_any_row_equals_its_plain_form(shuffled: bool) -> None:
    for seed in range(400):
        case = random_case(seed, shuffled=shuffled)
        law = dict(support(case.chain.distribution(case.row, Past(case.history, window=case.chain.window))))
        assert_same_law(law, chain_law(case.chain, case.row, case.history))


def test_rows_with_minus_infinity_are_filtered_as_if_those_tokens_did_not_exist() -> None:
    for seed in range(200):
        case = random_case(seed, shuffled=seed % 2 == 0)
        row = case.row.copy()
        row[seed % 3 :: 3] = -np.inf
        law = dict(support(case.chain.distribution(row, Past(case.history, window=case.chain.window))))
        assert_same_law(law, chain_law(case.chain, row, case.history))


def test_no_chain_changes_the_row_that_it_reads() -> None:
    for seed in range(100):
        case = random_case(seed, shuffled=True, size=400)
        assert not case.row.flags.writeable, "or writing to it would raise"
        case.chain.distribution(case.row, Past(case.history, window=case.chain.window))


def test_xtc_at_temperature_zero_chooses_by_chance_between_two_tokens() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    chain = SamplingChain(temperature=0, top_k=0, top_p=1, min_p=0, xtc_probability=0.25, xtc_threshold=0.2)
    assert dict(support(chain.distribution(logits))) == pytest.approx({0: 0.75, 1: 0.25})
    without_limit = replace(chain, xtc_threshold=0)
    assert dict(support(without_limit.distribution(logits))) == pytest.approx({0: 0.75, 3: 0.25})


@pytest.mark.parametrize("minimum", [0.05, 0.2])
def test_a_token_under_the_min_p_floor_never_appears(minimum: float) -> None:
    for seed in range(50):
        case = random_case(seed, shuffled=False, size=300)
        chain = replace(UNFILTERED, min_p=minimum, repeat_penalty=1.5, temperature=5)
        past = Past(case.history, window=chain.window)
        law = chain_law(replace(chain, min_p=0, temperature=1), case.row, case.history)
        allowed = {token for token, chance in law.items() if chance >= minimum * max(law.values()) * 0.9999}
        assert {token for token, _ in support(chain.distribution(case.row, past))} <= allowed


@pytest.mark.parametrize("chain", CHAINS, ids=range(len(CHAINS)))
def test_tokens_at_infinity_are_alike_and_leave_no_chance_to_others(chain: SamplingChain) -> None:
    logits = row(300).copy()
    logits[[7, 40]] = np.inf
    penalised = replace(chain, repeat_penalty=1.5, logit_bias=((40, -math.inf), (3, 100.0)))
    assert support(penalised.distribution(logits, Past((7,), window=64))) == [(7, 1.0)]
    expected = {7: 0.5, 40: 0.5} if chain.top_p > 0.5 else {7: 1.0}
    assert dict(support(chain.distribution(logits))) == pytest.approx(expected)


@pytest.mark.parametrize(
    "options",
    [
        {"repeat_penalty": 100.0},
        {"repeat_penalty": 0.01},
        {"dry_multiplier": 100.0, "dry_base": 1.75, "dry_penalty_last_n": 500},
        {"top_n_sigma": 2.0},
        {"top_n_sigma": 100.0},
        {"typical_p": 0.5},
        {"xtc_probability": 0.5},
        {"logit_bias": ((1, -10000.0), (0, 10000.0))},
    ],
    ids=str,
)
@pytest.mark.parametrize("temperature", [1e-300, 1e-3, 100])
def test_the_ends_of_float32_stay_numbers_through_every_sampler(options: dict[str, Any], temperature: float) -> None:
    logits = np.array([-3.4e38, 3.4e38, 0, -0.0, 1e-45, -np.inf], np.float32)
    for shown in (logits, -logits[:5]):
        chain = SamplingChain(temperature, top_k=0, top_p=1, min_p=0, **options)
        law = support(chain.distribution(shown, Past((0, 1, 1, 2) * 100, window=500)))
        assert sum(chance for _, chance in law) == pytest.approx(1)
        assert 5 not in dict(law)


def test_a_bias_that_bans_everything_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="bans every token"):
        SamplingChain(logit_bias=((0, -math.inf), (1, -math.inf))).distribution(row(2))
