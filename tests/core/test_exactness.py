"""The whole loop, every path of its luck: the texts of `speculate` have the probabilities of the target alone."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from specdec_cli.core.decode import Round, StopRule
from specdec_cli.core.noise import ChanceSource
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.verify import Proposal
from specdec_cli.drafters.lookup import LookupDrafter
from tests.core.reference import plain_law
from tests.enumeration import Text, text_law, text_law_by_rounds, total_variation
from tests.loops import GREEDY, IN_FLOAT64, UNFILTERED, drafter_of, plain, run, speculative
from tests.toys import TableModel, by_context, by_last_token

EXACT = 1e-12


def every(temperature: float = 1, **options: Any) -> SamplingChain:
    """A chain that keeps every token of a toy but for what `options` do."""
    return replace(SamplingChain(temperature, top_k=0, top_p=1, min_p=1e-30), **options)


CHAINS = {
    "hot": SamplingChain(temperature=1.7, top_k=0, top_p=1, min_p=1e-30),
    "cold": SamplingChain(temperature=0.3, top_k=0, top_p=1, min_p=1e-30),
    "top-k": SamplingChain(temperature=0.7, top_k=2, top_p=1, min_p=0),
    "top-p": SamplingChain(temperature=1, top_k=0, top_p=0.8, min_p=0),
    "min-p": SamplingChain(temperature=1.3, top_k=0, top_p=1, min_p=0.2),
    "all": SamplingChain(temperature=0.8, top_k=3, top_p=0.9, min_p=0.1),
    "greedy": GREEDY,
}
HISTORY_CHAINS = {
    "penalties": every(
        temperature=0.9, repeat_penalty=1.4, presence_penalty=0.3, frequency_penalty=0.2, repeat_last_n=3
    ),
    "dry": every(dry_multiplier=0.7, dry_base=1.5, dry_allowed_length=1, dry_penalty_last_n=5),
    "dry with breakers": every(dry_multiplier=0.7, dry_allowed_length=1, dry_breakers={2: ((),), 0: ((1,),)}),
    "typical": every(temperature=1.2, typical_p=0.6),
    "top-n-sigma": every(top_n_sigma=1.2),
    "xtc": every(temperature=0.8, xtc_probability=0.4, xtc_threshold=0.2),
    "xtc greedy": every(temperature=0, xtc_probability=0.4, xtc_threshold=0.2),
    "bias": every(logit_bias=((0, 0.7), (2, -1.1))),
    "ban": every(logit_bias=((1, -math.inf),)),
    "another order": SamplingChain(
        2, 2, 0.9, 0.05, repeat_penalty=1.3, samplers=("temperature", "min_p", "top_k", "penalties", "top_p")
    ),
    "xtc in the middle": SamplingChain(
        0.7,
        0,
        1,
        0.1,
        xtc_probability=0.5,
        xtc_threshold=0.15,
        presence_penalty=0.5,
        samplers=("xtc", "min_p", "penalties", "temperature"),
    ),
    "greedy with penalties": SamplingChain(0, repeat_penalty=1.6, frequency_penalty=0.3),
}

P, Q = by_context(1, 3), by_context(2, 3)


def prefix_rules() -> dict[str, StopRule]:
    """Stop rules that look at what was drafted; none of them drafts more than 4."""

    def unsure(proposal: Proposal) -> bool:
        return bool(proposal.tokens) and proposal.distributions[-1].at(proposal.tokens[-1]) < 0.5

    def reach(proposal: Proposal) -> float:
        pairs = zip(proposal.tokens, proposal.distributions, strict=True)
        return float(np.prod([q.at(token) for token, q in pairs]))

    return {
        "after token 1": lambda block: len(block.tokens) >= 4 or block.tokens[-1:] == (1,),
        "after an unlikely token": lambda block: len(block.tokens) >= 4 or unsure(block),
        "by the sum of the block": lambda block: len(block.tokens) >= 4 or sum(block.tokens) % 4 == 3,
        "when the block became unlikely": lambda block: len(block.tokens) >= 4 or reach(block) < 0.2,
    }


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4])
def test_any_draft_length_gives_the_law_of_the_target(length: int) -> None:
    loop = speculative(P, Q, IN_FLOAT64, enough=length)
    assert total_variation(text_law_by_rounds(loop, (0, 1), 5), plain_law(P, IN_FLOAT64, (0, 1), 5)) <= EXACT


@pytest.mark.parametrize("name", prefix_rules())
def test_a_block_may_end_by_any_look_at_the_drafted_prefix(name: str) -> None:
    loop = speculative(P, Q, IN_FLOAT64, enough=prefix_rules()[name])
    assert total_variation(text_law_by_rounds(loop, (0, 1), 5), plain_law(P, IN_FLOAT64, (0, 1), 5)) <= EXACT


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("length", [1, 3])
def test_every_filter_and_temperature_gives_the_filtered_law(name: str, length: int) -> None:
    target, draft, chain = by_context(3, 4), by_context(4, 4), CHAINS[name]
    loop = speculative(target, draft, chain, enough=length)
    assert total_variation(text_law_by_rounds(loop, (0, 1), 4), plain_law(target, chain, (0, 1), 4)) <= EXACT


@pytest.mark.parametrize("name", HISTORY_CHAINS)
@pytest.mark.parametrize("length", [1, 3])
def test_samplers_that_look_back_see_the_drafted_prefix_at_every_position(name: str, length: int) -> None:
    chain = HISTORY_CHAINS[name]
    loop = speculative(P, Q, chain, enough=length)
    assert total_variation(text_law(loop, (0, 1, 0), 4), plain_law(P, chain, (0, 1, 0), 4)) <= EXACT


@pytest.mark.parametrize("name", HISTORY_CHAINS)
def test_plain_decoding_looks_back_too(name: str) -> None:
    loop = plain(P, HISTORY_CHAINS[name])
    assert total_variation(text_law(loop, (0, 1, 0), 4), plain_law(P, HISTORY_CHAINS[name], (0, 1, 0), 4)) <= EXACT


@pytest.mark.parametrize("length", [1, 2, 4])
@pytest.mark.parametrize("ends", [{0}, {1, 2}])
def test_ends_of_generation_cut_the_text_with_their_probability(length: int, ends: set[int]) -> None:
    loop = speculative(P, Q, IN_FLOAT64, enough=length, ends=ends)
    assert total_variation(text_law_by_rounds(loop, (0, 1), 5), plain_law(P, IN_FLOAT64, (0, 1), 5, ends)) <= EXACT


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_whole_runs_with_their_caches_carried_along_are_exact(length: int) -> None:
    target, draft = by_context(5, 2), by_context(6, 2)
    loop = speculative(target, draft, IN_FLOAT64, enough=length)
    assert total_variation(text_law(loop, (1,), 4), plain_law(target, IN_FLOAT64, (1,), 4)) <= EXACT


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_whole_runs_with_an_end_of_generation_are_exact_for_every_budget(budget: int) -> None:
    loop = speculative(P, Q, IN_FLOAT64, enough=2, ends={2})
    assert total_variation(text_law(loop, (0,), budget), plain_law(P, IN_FLOAT64, (0,), budget, {2})) <= EXACT


def test_the_float32_path_is_exact_within_its_stated_error() -> None:
    loop = speculative(P, Q, UNFILTERED, enough=3)
    assert total_variation(text_law_by_rounds(loop, (0, 1), 4), plain_law(P, UNFILTERED, (0, 1), 4)) <= 1e-6


def test_a_draft_equal_to_the_target_is_exact() -> None:
    loop = speculative(P, P, IN_FLOAT64, enough=3)
    assert total_variation(text_law_by_rounds(loop, (0, 1), 4), plain_law(P, IN_FLOAT64, (0, 1), 4)) <= EXACT


def test_a_draft_that_never_says_what_the_target_says_is_exact() -> None:
    target, draft = by_last_token([[0, 1, -99, -99]] * 4), by_last_token([[-99, -99, 1, 0]] * 4)
    chain = SamplingChain(temperature=1, top_k=2, top_p=1, min_p=0)
    loop = speculative(target, draft, chain, enough=2)
    assert total_variation(text_law_by_rounds(loop, (0,), 4), plain_law(target, chain, (0,), 4)) <= EXACT


def test_a_padded_vocabulary_on_either_side_is_exact() -> None:
    for target, draft in ((by_context(7, 3), by_context(8, 4)), (by_context(7, 4), by_context(8, 3))):
        loop = speculative(target, draft, IN_FLOAT64, enough=2)
        assert total_variation(text_law_by_rounds(loop, (0,), 3), plain_law(target, IN_FLOAT64, (0,), 3)) <= EXACT


def test_a_greedy_draft_of_a_sampled_target_is_exact() -> None:
    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        drafter = drafter_of(TableModel(Q), GREEDY)
        return run(TableModel(P), drafter, prompt, chain=IN_FLOAT64, noise=noise, budget=budget, enough=3)

    assert total_variation(text_law_by_rounds(loop, (0, 1), 5), plain_law(P, IN_FLOAT64, (0, 1), 5)) <= EXACT


def test_prompt_lookup_is_exact() -> None:
    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        return run(
            TableModel(P), LookupDrafter(), prompt, chain=IN_FLOAT64, noise=noise, budget=budget, ends={2}, enough=4
        )

    prompt = (0, 1, 0, 1, 1, 0, 1)
    assert total_variation(text_law(loop, prompt, 5), plain_law(P, IN_FLOAT64, prompt, 5, {2})) <= EXACT


@pytest.mark.parametrize("name", CHAINS)
def test_plain_decoding_has_the_law_of_the_target(name: str) -> None:
    loop = plain(P, CHAINS[name], ends={2})
    assert total_variation(text_law(loop, (0, 1), 4), plain_law(P, CHAINS[name], (0, 1), 4, {2})) <= EXACT
