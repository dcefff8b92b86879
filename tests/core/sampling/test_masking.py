"""A masked row is a row with -inf where the mask says no; and the mask is asked about no more than it takes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from specdec_cli.core.distribution import Ids
from specdec_cli.core.past import Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.masking import NothingAllowedError
from specdec_cli.core.top_k import Logits
from specdec_cli.errors import ModelError
from tests.core.reference import chain_law
from tests.core.sampling.random_chains import random_case
from tests.enumeration import Law, support
from tests.loops import UNFILTERED

SIZE = 20_000


class Only:
    """A mask that allows `tokens` at every position, and counts what it is asked."""

    def __init__(self, tokens: Collection[int]) -> None:
        self.tokens = frozenset(tokens)
        self.asked: list[int] = []

    def allowed(self, ids: Ids) -> npt.NDArray[np.bool_]:
        self.asked += ids.tolist()
        return np.isin(ids, list(self.tokens))

    @property
    def may_end(self) -> bool:
        return False

    def after(self, token: int) -> Only:
        return self


def some(rng: np.random.Generator, size: int) -> Only:
    return Only(np.flatnonzero(rng.random(size) < rng.choice([0.9, 0.3, 0.02, 3 / size])).tolist() or [0])


def without(row: Logits, mask: Only) -> Logits:
    rest: Logits = np.where(np.isin(np.arange(row.size), list(mask.tokens)), row, np.float32(-np.inf))
    return rest


def masked_law(chain: SamplingChain, row: Logits, mask: Only, history: tuple[int, ...] = ()) -> Law[int]:
    return dict(support(chain.distribution(row, Past(history, window=chain.window, mask=mask))))


def assert_same_law(told: Law[int], expected: Law[int]) -> None:
    ids = [{token for token, chance in law.items() if chance > 1e-30} for law in (told, expected)]
    assert ids[0] == ids[1]
    assert all(abs(told[token] - expected[token]) <= 1e-6 for token in ids[0])


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("size", [60, 4000])
def test_a_mask_is_minus_infinity_for_every_chain(shuffled: bool, size: int) -> None:
    for seed in range(250):
        case, mask = random_case(seed, shuffled=shuffled, size=size), some(np.random.default_rng(seed), size)
        banned = {token for token, bias in case.chain.logit_bias if bias == -np.inf}
        if mask.tokens <= banned:
            continue
        told = masked_law(case.chain, case.row, mask, case.history)
        window = Past(case.history, window=case.chain.window)
        assert_same_law(told, dict(support(case.chain.distribution(without(case.row, mask), window))))
        if size < 100:
            assert_same_law(told, chain_law(case.chain, case.row, case.history, mask.tokens))


@pytest.mark.parametrize("seed", range(20))
def test_no_token_is_asked_about_twice_and_none_at_minus_infinity(seed: int) -> None:
    case, mask = random_case(seed, shuffled=True, size=4000), Only([5, 3999])
    row = case.row.copy()
    row[1::2] = -np.inf
    row[3999] = -30
    masked_law(replace(case.chain, logit_bias=()), row, mask, case.history)
    assert len(mask.asked) == len(set(mask.asked))
    assert np.all(row[mask.asked] > -np.inf)


def peaked(seed: int = 1) -> Logits:
    """A row whose best tokens are as far ahead as those of a real model."""
    rng = np.random.default_rng(seed)
    row: Logits = rng.normal(0, 1, SIZE).astype(np.float32)
    row[rng.choice(SIZE, 40, replace=False)] = np.linspace(22, 6, 40, dtype=np.float32)
    return row


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"temperature": 0}, 256),
        ({}, 256),
        ({"repeat_penalty": 1.3, "dry_multiplier": 0.8}, 256),
        ({"top_k": 3, "top_p": 1, "min_p": 0}, 256),
        ({"top_k": 0, "top_p": 1, "min_p": 0.05}, 256),
        ({"top_k": 0, "top_p": 0.9, "min_p": 0}, 256),
        ({"top_k": 40, "top_p": 1, "min_p": 0.05}, 256),
        ({"top_k": 300, "top_p": 1, "min_p": 0}, 2048),
        ({"top_k": 0, "top_p": 1, "min_p": 0}, SIZE),
        ({"top_k": 0, "top_p": 1, "min_p": 0, "xtc_probability": 0.5}, SIZE),
        ({"top_k": 0, "top_p": 1, "min_p": 0, "top_n_sigma": 1.0}, SIZE),
        ({"top_k": 0, "top_p": 1, "min_p": 0, "temperature": 0.1}, 256),
    ],
    ids=str,
)
def test_a_mask_is_asked_about_no_more_than_it_takes(options: dict[str, Any], asked: int) -> None:
    row = peaked()
    mask = Only([*np.argsort(-row)[:40:2].tolist(), *range(0, SIZE, 3)])
    chain = SamplingChain(**options)
    told = masked_law(chain, row, mask)
    assert len(mask.asked) == asked
    assert_same_law(told, dict(support(chain.distribution(without(row, mask)))))


@pytest.mark.parametrize("first", ["top_k", "xtc", "top_n_sigma", "min_p"])
def test_what_weighs_nothing_still_counts_where_a_later_temperature_can_lift_it(first: str) -> None:
    row = -np.arange(2000, dtype=np.float32)
    options: dict[str, Any] = {"xtc_probability": 0.5, "xtc_threshold": 0.1, "top_n_sigma": 2.0, "min_p": 1e-300}
    chain = SamplingChain(temperature=100, top_k=300, samplers=(first, "temperature"), **options)
    mask = Only(range(0, 2000, 4))
    assert_same_law(masked_law(chain, row, mask), dict(support(chain.distribution(without(row, mask)))))


def test_a_mask_that_allows_none_of_the_best_is_asked_further_down() -> None:
    row = peaked()
    rare = np.argsort(-row)[[5000, 5001, 19_990]].tolist()
    mask = Only(rare)
    assert masked_law(SamplingChain(temperature=0), row, mask) == {rare[0]: 1.0}
    assert 5000 < len(mask.asked) <= SIZE


@pytest.mark.parametrize("size", [5, 1000])
@pytest.mark.parametrize("temperature", [0, 1])
def test_a_mask_that_allows_nothing_is_an_error(size: int, temperature: float) -> None:
    row = np.zeros(size, np.float32)
    for mask in (Only([]), Only([size + 3])):
        with pytest.raises(NothingAllowedError, match="the grammar allows no token here"):
            masked_law(SamplingChain(temperature), row, mask)


def test_what_the_model_or_the_user_rules_out_is_not_allowed_by_a_mask() -> None:
    row = np.array([0, -np.inf, 1, 2], np.float32)
    with pytest.raises(NothingAllowedError, match="the grammar allows no token here"):
        masked_law(replace(UNFILTERED, logit_bias=((2, -np.inf),)), row, Only([1, 2]))
    assert masked_law(UNFILTERED, row, Only([1, 2])) == {2: 1.0}


@pytest.mark.parametrize("temperature", [0, 1])
def test_infinite_logits_count_only_where_the_mask_allows_them(temperature: float) -> None:
    chain = replace(UNFILTERED, temperature=temperature)
    row = np.array([1, np.inf, 5, np.inf, 0], np.float32)
    assert masked_law(chain, row, Only([0, 3, 4])) == {3: 1.0}
    assert masked_law(replace(chain, top_k=1), row, Only([0, 2])) == {2: 1.0}
    with pytest.raises(NothingAllowedError, match="the grammar allows no token here"):
        masked_law(chain, row, Only([]))


@pytest.mark.parametrize("bad", [[1, np.nan, 2], [-np.inf] * 3])
def test_logits_that_are_not_numbers_are_an_error_of_the_model_under_a_mask_too(bad: list[float]) -> None:
    with pytest.raises(ModelError, match="not numbers"):
        masked_law(SamplingChain(), np.array(bad, np.float32), Only([0]))
