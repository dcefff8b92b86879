from __future__ import annotations

import numpy as np
import pytest

from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Noise, Purpose
from specdec_cli.core.past import Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.stats import Counters
from specdec_cli.drafters.model import LIKELIEST, ModelDrafter
from tests.core.reference import chain_law
from tests.drafters.masks import OneOf
from tests.enumeration import support
from tests.loops import GREEDY, drafter_of, plain, run
from tests.toys import TableModel, by_context, by_last_token

SAMPLED = SamplingChain(temperature=0.7, top_k=3, top_p=1, min_p=0)
P = by_context(1, 5)
CHANCE = Noise(3).round(0, 0)


def test_every_token_is_drawn_from_the_distribution_that_is_reported_with_it() -> None:
    proposal = drafter_of(TableModel(P), SAMPLED).propose((0, 1), Past(), FixedLength(4), CHANCE)
    for position, (token, q) in enumerate(zip(proposal.tokens, proposal.distributions, strict=True)):
        context = (0, 1, *proposal.tokens[:position])
        assert dict(support(q)) == pytest.approx(chain_law(SAMPLED, P(context)))
        assert token == q.draw(CHANCE.uniform(Purpose.DRAFT, position))


def test_the_last_drafted_token_is_left_for_the_next_round() -> None:
    model = TableModel(P)
    proposal = drafter_of(model).propose((0, 1, 2), Past(), FixedLength(3), CHANCE)
    assert model.tokens == [0, 1, 2, *proposal.tokens[:2]]
    assert model.calls == [(3, 1), (1, 1), (1, 1)]


def test_a_block_of_none_does_not_touch_the_model() -> None:
    model = TableModel(P)
    assert drafter_of(model).propose((0, 1), Past(), FixedLength(0), CHANCE).tokens == ()
    assert model.calls == []


def test_after_full_acceptance_it_catches_up_with_its_own_last_token_and_the_bonus() -> None:
    model = TableModel(P)
    drafter = drafter_of(model)
    first = drafter.propose((0, 1), Past(), FixedLength(3), CHANCE)
    context = (0, 1, *first.tokens, 4)
    drafter.rewind(len(context) - 1)
    second = drafter.propose(context, Past(), FixedLength(2), CHANCE)
    assert model.calls[3] == (2, 1)
    assert second.tokens == drafter_of(TableModel(P)).propose(context, Past(), FixedLength(2), CHANCE).tokens


def test_after_a_rejection_it_goes_on_from_the_corrected_text() -> None:
    model = TableModel(P)
    drafter = drafter_of(model)
    first = drafter.propose((0, 1), Past(), FixedLength(4), CHANCE)
    context = (0, 1, first.tokens[0], (first.tokens[1] + 1) % 5)
    drafter.rewind(len(context) - 1)
    second = drafter.propose(context, Past(), FixedLength(2), CHANCE)
    assert second.tokens == drafter_of(TableModel(P)).propose(context, Past(), FixedLength(2), CHANCE).tokens


def test_the_prompt_is_read_ahead_without_its_last_token() -> None:
    model = TableModel(P)
    drafter_of(model).prefill((0, 1, 2))
    assert (model.tokens, model.calls) == ([0, 1], [(2, 0)])


def _sure(logits: list[float], chain: SamplingChain, past: Past, vocabulary: int) -> tuple[float, ...]:
    drafter = ModelDrafter(TableModel(by_last_token([logits] * 7)), chain, vocabulary=vocabulary, capacity=99)
    return drafter.propose((0,), past, FixedLength(1), CHANCE).confidences


@pytest.mark.parametrize(
    ("past", "counted"),
    [
        (Past(), [9, 1.5, 0.5, 1, -1]),
        (Past(mask=OneOf(1, 2, 4)), [1.5, 0.5, -1]),
        (Past(mask=OneOf(1, 2, 6)), [1.5, 0.5]),
        (Past(mask=OneOf(4)), [-1]),
    ],
    ids=["unmasked", "three", "padding", "one"],
)
def test_how_sure_it_is_counts_what_it_may_draw_only(past: Past, counted: list[float]) -> None:
    weights = np.exp(counted)
    assert _sure([9, 1.5, 0.5, 1, -1, 9, 9], GREEDY, past, 5) == pytest.approx((weights[0] / weights.sum(),))


def test_a_token_that_no_likely_one_competes_with_is_sure() -> None:
    likely = [5.0] * LIKELIEST
    assert _sure([*likely, 1.0, 0.9], GREEDY, Past(mask=OneOf(LIKELIEST, LIKELIEST + 1)), LIKELIEST + 2) == (1.0,)


@pytest.mark.parametrize("past", [Past(), Past(mask=OneOf(1, 2))])
def test_a_logit_beyond_all_numbers_is_sure(past: Past) -> None:
    assert _sure([0, np.inf, 3], GREEDY, past, 3) == (1.0,)


def test_padding_of_the_draft_is_never_proposed() -> None:
    padded = by_last_token([[0, 0, 0, 0, 0, 90, 90]] * 7)
    for chain in (GREEDY, SAMPLED):
        proposal = ModelDrafter(TableModel(padded), chain, vocabulary=5, capacity=99).propose(
            (0,), Past(), FixedLength(20), CHANCE
        )
        assert max(proposal.tokens) < 5


def test_a_token_that_only_the_target_knows_is_no_obstacle() -> None:
    model = TableModel(P)
    drafter = drafter_of(model)
    drafter.prefill((0, 6, 1))
    assert len(drafter.propose((0, 6, 1, 7), Past(), FixedLength(3), CHANCE).tokens) == 3
    assert model.tokens[:4] == [0, 4, 1, 4]


@pytest.mark.parametrize(("capacity", "drafted"), [(1, 0), (2, 0), (3, 1), (5, 3), (9, 6), (10, 7)])
def test_a_full_draft_cache_ends_drafting_and_not_the_text(capacity: int, drafted: int) -> None:
    counters, text = Counters(), list[int]()
    drafter = drafter_of(TableModel(P, capacity=capacity), capacity=capacity)
    drafter.prefill((0, 1, 2))
    for round_ in run(TableModel(P), drafter, (0, 1, 2), budget=30):
        counters.add(round_)
        text += round_.tokens
    assert text == [token for round_ in plain(P, GREEDY)((0, 1, 2), 30, Noise(1)) for token in round_.tokens]
    assert drafter.exhausted
    assert counters.drafted == counters.accepted == drafted


def test_a_draft_that_was_outgrown_is_back_when_the_text_fits_again() -> None:
    model = TableModel(P, capacity=3)
    drafter = drafter_of(model, capacity=3)
    assert drafter.propose((0, 1, 2, 3), Past(), FixedLength(2), CHANCE).tokens == ()
    assert drafter.exhausted
    assert model.calls == []
    assert len(drafter.propose((0, 1), Past(), FixedLength(2), CHANCE).tokens) == 2
    assert not drafter.exhausted


@pytest.mark.parametrize(
    ("prompt", "read"), [((0, 1, 2, 3, 4), 1), ((0, 1, 3, 4, 2), 2), ((0,), 0), ((4, 4, 4), 2), ((0, 1, 2), 0)]
)
def test_of_a_prompt_only_what_the_cache_does_not_hold_is_read(prompt: tuple[int, ...], read: int) -> None:
    model = TableModel(P)
    drafter_of(model).prefill((0, 1, 2, 3))
    before = model.evaluated
    drafter_of(model).prefill(prompt)
    assert model.tokens == list(prompt[:-1])
    assert model.evaluated - before == read


def test_a_prompt_that_the_cache_cannot_hold_leaves_nothing_false_in_it() -> None:
    model = TableModel(P, capacity=3)
    drafter = drafter_of(model, capacity=3)
    drafter.prefill((0, 1, 2))
    drafter.prefill((0, 2, 2, 2, 2))
    assert model.tokens == [0]


def test_a_draft_with_room_for_everything_is_never_exhausted() -> None:
    drafter = drafter_of(TableModel(P, capacity=6), capacity=6)
    assert len(drafter.propose((0, 1, 2), Past(), FixedLength(4), CHANCE).tokens) == 4
    assert not drafter.exhausted
