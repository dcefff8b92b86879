"""Which samplers act, in which order, and what is known of a chain before any logits are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from specdec_cli.core.past import Past
from specdec_cli.core.sampling.chain import SamplingChain
from tests.core.sampling.random_chains import random_case, random_row
from tests.enumeration import support
from tests.loops import UNFILTERED


def test_a_greedy_chain_gives_one_token_and_others_may_give_more() -> None:
    several = 0
    for seed in range(400):
        case = random_case(seed, shuffled=True, size=60)
        law = support(case.chain.distribution(case.row, Past(case.history, window=case.chain.window)))
        assert not case.chain.greedy or len(law) == 1
        several += len(law) > 1
    assert several > 100


@pytest.mark.parametrize(
    ("options", "greedy"),
    [
        ({"temperature": 0}, True),
        ({"top_k": 1}, True),
        ({"top_p": 0}, True),
        ({"temperature": 0, "samplers": ("top_k",)}, False),
        ({"top_k": 1, "samplers": ("top_p", "temperature")}, False),
        ({"temperature": 0, "xtc_probability": 0.5}, False),
        ({"temperature": 0, "xtc_probability": 0.5, "xtc_threshold": 0.6}, True),
        ({"temperature": 0, "xtc_probability": 0.5, "samplers": ("temperature", "xtc")}, True),
        ({"top_k": 1, "xtc_probability": 0.5, "samplers": ("xtc", "top_k")}, False),
        ({"top_k": 1, "xtc_probability": 0.5}, True),
        ({"temperature": 0, "repeat_penalty": 1.5}, True),
    ],
)
def test_greedy_is_seen_whatever_the_order(options: dict[str, Any], greedy: bool) -> None:
    assert SamplingChain(**options).greedy is greedy


def test_bias_and_penalties_move_the_greedy_choice() -> None:
    logits = np.array([1, 3, 2.5, 0], np.float32)
    past = Past((1, 1), window=64)
    cases: list[tuple[dict[str, Any], int]] = [
        ({"repeat_penalty": 2.0}, 2),
        ({"frequency_penalty": 0.3}, 2),
        ({"presence_penalty": 0.4}, 1),
        ({"logit_bias": ((0, 2.5),)}, 0),
        ({"logit_bias": ((1, -math.inf),)}, 2),
        ({"logit_bias": ((3, 2.0), (3, 2.0), (9, 50.0))}, 3),
    ]
    for options, expected in cases:
        assert support(SamplingChain(temperature=0, **options).distribution(logits, past)) == [(expected, 1.0)]


def test_a_filter_before_the_penalties_bounds_what_greedy_may_choose() -> None:
    chain = SamplingChain(temperature=0, top_k=2, repeat_penalty=10, samplers=("top_k", "penalties", "temperature"))
    told = chain.distribution(np.array([5, 4, 3, 2], np.float32), Past((0, 1), window=64))
    assert support(told) == [(0, 1.0)]


def test_the_order_of_the_samplers_is_that_of_the_list() -> None:
    logits = np.log(np.array([0.6, 0.3, 0.08, 0.02], np.float32))
    options: dict[str, Any] = {"temperature": 3, "top_k": 0, "top_p": 1, "min_p": 0.2}
    filtered = SamplingChain(**options, samplers=("min_p", "temperature")).distribution(logits)
    heated = SamplingChain(**options, samplers=("temperature", "min_p")).distribution(logits)
    assert [token for token, _ in support(filtered)] == [0, 1]
    assert [token for token, _ in support(heated)] == [0, 1, 2, 3]


def test_a_sampler_that_is_not_in_the_list_is_off() -> None:
    chain = replace(random_case(1, shuffled=False).chain, samplers=(), logit_bias=(), temperature=0)
    row = random_row(np.random.default_rng(1), 50)
    assert support(chain.distribution(row)) == support(UNFILTERED.distribution(row))


def test_what_a_chain_looks_back_at_is_its_window() -> None:
    assert SamplingChain().window == 0
    assert SamplingChain(repeat_penalty=1.1).window == 64
    assert SamplingChain(presence_penalty=1, repeat_last_n=0).window == 0
    assert SamplingChain(frequency_penalty=1, repeat_last_n=10, dry_multiplier=1, dry_penalty_last_n=30).window == 30
    assert SamplingChain(repeat_penalty=1.1, samplers=("temperature",)).window == 0


def test_a_longer_past_than_the_window_makes_no_difference() -> None:
    for seed in range(100):
        case = random_case(seed, shuffled=False, size=60)
        window = case.chain.window
        exact, longer = (case.chain.distribution(case.row, Past(case.history, window=n)) for n in (window, 1000))
        assert support(exact) == support(longer)
