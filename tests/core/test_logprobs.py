"""Log-probabilities are those of the model and of p at the very place of each token, however the token came to be."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from specdec_cli.core.decode import Round, autoregress, speculate
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.logprobs import Logprob, TokenLogprobs, token_logprobs
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.verify import RULES, Kind
from specdec_cli.drafters.lookup import LookupDrafter
from tests.core.reference import chain_law, softmax
from tests.core.test_past import Automaton, Edges
from tests.loops import UNFILTERED, drafter_of
from tests.toys import TableModel, by_context

SIZE, COUNT = 6, 3
P, Q = by_context(31, SIZE), by_context(32, SIZE)
PROMPT = [0, 1, 2, 0, 1]
CHAINS = {
    "none": UNFILTERED,
    "filters": SamplingChain(0.8, top_k=4, top_p=0.9, min_p=0.1),
    "greedy": SamplingChain(0),
    "penalties": replace(UNFILTERED, repeat_penalty=1.4, frequency_penalty=0.5, repeat_last_n=4, min_p=0.02),
    "dry and typical": replace(UNFILTERED, dry_multiplier=1.0, dry_allowed_length=1, typical_p=0.8),
    "xtc": replace(UNFILTERED, xtc_probability=0.5, xtc_threshold=0.15),
    "bias": replace(UNFILTERED, logit_bias=((0, 2.0), (3, -math.inf))),
}
GRAMMAR: Edges = ({0: 1, 1: 1, 2: 2, 5: 0}, {1: 2, 3: 2, 4: 0, 5: 1}, {0: 0, 1: 1, 2: 2, 4: 1})


def rounds_of(
    name: str | None, draft: str, chain: SamplingChain, *, masked: bool, ends: tuple[int, ...]
) -> list[Round]:
    """A run of 60 tokens, plain without a rule."""
    rule = RULES[name or "token"]
    options: dict[str, Any] = {"chain": chain, "noise": rule.noise(5), "budget": 60, "is_end": ends.__contains__}
    options |= {"mask": Automaton(GRAMMAR) if masked else None, "logprobs": COUNT}
    if name is None:
        return list(autoregress(TableModel(P), PROMPT, **options))
    drafter = LookupDrafter() if draft == "lookup" else drafter_of(TableModel(Q), chain)
    return list(speculate(TableModel(P), drafter, PROMPT, rule=rule, enough=FixedLength(3), **options))


def assert_right(told: TokenLogprobs, chain: SamplingChain, context: list[int], mask: Automaton | None) -> None:
    """`told` is about the place after `context`, worked out slowly."""
    row = P(tuple(context))
    allowed = None if mask is None else {token for token in range(SIZE) if mask.allowed(np.array([token]))[0]}
    raw, law = softmax(dict(enumerate(row.tolist()))), chain_law(chain, row, context, allowed)
    for one in (told.emitted, *told.best):
        assert one.raw == pytest.approx(math.log(raw[one.token]), abs=1e-6)
        chance = law.get(one.token, 0)
        assert one.chain == (pytest.approx(math.log(chance), abs=1e-5) if chance else -math.inf)
    assert [one.token for one in told.best] == sorted(raw, key=lambda token: (-raw[token], token))[:COUNT]


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize(("rule", "draft"), [(None, ""), *((rule, "model") for rule in RULES), ("block", "lookup")])
def test_they_are_those_of_the_place_of_each_token(
    rule: str | None, draft: str, chain: SamplingChain, masked: bool
) -> None:
    context, mask = list(PROMPT), Automaton(GRAMMAR)
    kinds: Counter[Kind] = Counter()
    for round_ in rounds_of(rule, draft, chain, masked=masked, ends=()):
        kinds.update(round_.kinds)
        for token, told in zip(round_.tokens, round_.logprobs, strict=True):
            assert told.emitted.token == token
            assert_right(told, chain, context, mask if masked else None)
            context.append(token)
            mask = mask.after(token) if masked else mask
    assert len(context) == len(PROMPT) + 60
    if draft == "model":
        assert set(kinds) == set(Kind)


@pytest.mark.parametrize("rule", [None, *RULES])
def test_a_token_that_was_cut_has_none(rule: str | None) -> None:
    for ends in ((2,), (4,), (0, 5)):
        rounds = rounds_of(rule, "model", UNFILTERED, masked=False, ends=ends)
        assert rounds[-1].ended
        assert all([told.emitted.token for told in each.logprobs] == list(each.tokens) for each in rounds)


def test_a_round_that_is_cut_keeps_those_of_what_is_left() -> None:
    told = tuple(TokenLogprobs(Logprob(token, -1.0, -1.0), ()) for token in (7, 8, 9))
    round_ = Round(2, 2, Kind.BONUS, (7, 8, 9), (0.5, 0.5), logprobs=told)
    assert [round_.cut(count).logprobs for count in range(4)] == [told[:count] for count in range(4)]


def test_nothing_is_worked_out_unless_it_is_asked_for() -> None:
    rounds = autoregress(
        TableModel(P), PROMPT, chain=UNFILTERED, noise=RULES["token"].noise(1), budget=3, is_end=lambda _: False
    )
    assert [round_.logprobs for round_ in rounds] == [()] * 3


@pytest.mark.parametrize("count", [0, 1, 4, 5, 1000])
def test_the_best_are_the_most_likely_of_the_model_the_lowest_id_first_among_equals(count: int) -> None:
    logits = np.array([1, 2, 3, 3, -np.inf], np.float32)
    told = token_logprobs(logits, Distribution.one_hot(1), 1, count)
    assert [one.token for one in told.best] == [2, 3, 1, 0, 4][:count]
    assert told.emitted.chain == 0
    assert all(one.chain == -math.inf for one in told.best if one.token != 1)


def test_a_token_that_the_model_never_says_has_no_probability() -> None:
    logits = np.array([0, 0, -np.inf], np.float32)
    told = token_logprobs(logits, Distribution.of(np.array([0.5, 0.5, 0])), 0, 3)
    assert told.emitted == Logprob(0, math.log(0.5), math.log(0.5))
    assert told.best[2] == Logprob(2, -math.inf, -math.inf)


def test_a_token_of_a_likelihood_below_float32_has_a_logarithm_of_the_model_still() -> None:
    logits = np.array([0, -500], np.float32)
    assert token_logprobs(logits, SamplingChain(1, 0, 1, 0).distribution(logits), 1, 0).emitted.raw == -500


@pytest.mark.parametrize("size", [5, 1000, 151_936])
def test_the_whole_of_a_vocabulary_is_summed_up_exactly(size: int) -> None:
    logits = np.random.default_rng(size).normal(0, 3, size).astype(np.float32)
    whole = math.log(math.fsum(math.exp(float(logit)) for logit in logits))
    told = token_logprobs(logits, UNFILTERED.distribution(logits), 3, 0).emitted
    assert told.raw == pytest.approx(float(logits[3]) - whole, abs=1e-6)
    assert told.chain == pytest.approx(told.raw, abs=2e-5)


def test_infinite_logits_leave_no_chance_to_the_others() -> None:
    logits = np.array([1, np.inf, 5, np.inf], np.float32)
    told = token_logprobs(logits, UNFILTERED.distribution(logits), 1, 3)
    assert told.emitted == Logprob(1, math.log(0.5), math.log(0.5))
    assert told.best == (told.emitted, Logprob(3, math.log(0.5), math.log(0.5)), Logprob(2, -math.inf, -math.inf))
