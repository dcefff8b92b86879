from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from specdec_cli.core.decode import Drafter, Model
from specdec_cli.core.distribution import Ids
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Noise, Purpose, SharedNoise
from specdec_cli.core.past import Mask, Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.translation import Translator
from specdec_cli.core.verify import RULES
from specdec_cli.drafters.translated import TranslatedDrafter
from tests.core.reference import chain_law, plain_law
from tests.core.test_exactness import CHAINS, EXACT, HISTORY_CHAINS, prefix_rules
from tests.drafters.masks import OneOf
from tests.enumeration import Luck, SharedPaths, fresh, support, text_law, text_law_by_rounds, total_variation
from tests.loops import GREEDY, IN_FLOAT64, UNFILTERED, plain, run, speculative
from tests.statistical import emitted
from tests.toys import LogitsOf, TableModel, by_context, by_last_token

TEXTS = {0: "a", 1: "b", 2: "c", 3: "xy", 4: ""}
"""What the target's tokens print; the last is a control token."""
DRAFT_TEXTS = ["x", "c", "a", "xyx", "b", "y", "|"]
"""What the draft's tokens print: three of the target's in another order, and strangers."""
TO_TARGET = [-1, 2, 0, -1, 1, -1, -1]
TO_DRAFT = [2, 4, 1, -1, -1]
LUCK: dict[str, Luck] = {"token": fresh, "block": fresh, "coupled": SharedPaths}

P, Q = by_context(1, 4), by_context(2, 7)
CHANCE = Noise(3).round(0, 0)
SAMPLED = SamplingChain(temperature=0.7, top_k=2, top_p=1, min_p=0)


def cut(text: bytes) -> list[int]:
    """The draft's own tokenizer: from the left, the longest token that fits."""
    rest, tokens = text.decode(), list[int]()
    while rest:
        fitting = [token for token, spelled in enumerate(DRAFT_TEXTS) if rest.startswith(spelled)]
        tokens.append(max(fitting, key=lambda token: len(DRAFT_TEXTS[token])))
        rest = rest[len(DRAFT_TEXTS[tokens[-1]]) :]
    return tokens


TRANSLATOR = Translator(TO_DRAFT, [-1] * 256, {4: b"|"}, lambda token: TEXTS[token].encode(), cut)


def translated(
    model: Model, chain: SamplingChain = GREEDY, *, vocabulary: int = 4, capacity: int = 1 << 30
) -> TranslatedDrafter:
    return TranslatedDrafter(model, chain, TRANSLATOR, to_target=TO_TARGET, vocabulary=vocabulary, capacity=capacity)


def of_target(model: Model, chain: SamplingChain, *, vocabulary: int, capacity: int) -> Drafter:
    """As `Propose` wants it."""
    return translated(model, chain, vocabulary=4, capacity=capacity)


def in_target(logits: LogitsOf, context: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """What the draft says after the target's tokens `context`, in the target's ids."""
    read = tuple(token for each in context for token in TRANSLATOR.read(each))
    row = np.full(4, -np.inf, np.float32)
    row[[2, 0, 1]] = logits(read)[[1, 2, 4]]
    return row


@pytest.mark.parametrize("chain", [SAMPLED, UNFILTERED, GREEDY], ids=["filtered", "unfiltered", "greedy"])
def test_every_token_is_drawn_from_the_shared_tokens_alone_and_reported_with_that(chain: SamplingChain) -> None:
    proposal = translated(TableModel(Q), chain).propose((0, 3), Past(), FixedLength(6), CHANCE)
    assert len(proposal.tokens) == 6
    for position, (token, q) in enumerate(zip(proposal.tokens, proposal.distributions, strict=True)):
        row = in_target(Q, (0, 3, *proposal.tokens[:position]))
        law = {each: chance for each, chance in chain_law(chain, row[:3]).items() if chance > 0}
        assert dict(support(q)) == pytest.approx(law)
        assert token == (q.certain if q.certain is not None else q.draw(CHANCE.uniform(Purpose.DRAFT, position)))
        assert sum(probability for _, probability in support(q)) == pytest.approx(1)


@pytest.mark.parametrize("name", LUCK)
@pytest.mark.parametrize("enough", [1, 2, 3, *prefix_rules().values()])
def test_the_texts_are_those_of_the_target_whatever_the_vocabularies(name: str, enough: int) -> None:
    loop = speculative(P, Q, IN_FLOAT64, enough=enough, ends={2}, rule=RULES[name], propose=of_target)
    law = plain_law(P, IN_FLOAT64, (0, 3), 4, {2})
    assert total_variation(text_law(loop, (0, 3), 4, LUCK[name]), law) <= EXACT


@pytest.mark.parametrize("chain", [*CHAINS.values(), *HISTORY_CHAINS.values()], ids=[*CHAINS, *HISTORY_CHAINS])
@pytest.mark.parametrize("name", LUCK)
def test_every_sampler_works_on_the_target_s_ids(name: str, chain: SamplingChain) -> None:
    loop = speculative(P, Q, chain, enough=2, rule=RULES[name], propose=of_target)
    law = plain_law(P, chain, (0, 1), 3)
    assert total_variation(text_law(loop, (0, 1), 3, LUCK[name]), law) <= EXACT


def test_longer_texts_are_exact_too() -> None:
    loop = speculative(P, Q, IN_FLOAT64, enough=4, propose=of_target)
    assert total_variation(text_law_by_rounds(loop, (3, 1), 5), plain_law(P, IN_FLOAT64, (3, 1), 5)) <= EXACT


def test_the_coupled_rule_says_what_the_target_says_alone() -> None:
    noise, rule = SharedNoise(1), RULES["coupled"]
    wanted = emitted(plain(P, UNFILTERED)((0,), 40, noise))
    assert emitted(speculative(P, Q, UNFILTERED, enough=3, rule=rule, propose=of_target)((0,), 40, noise)) == wanted


def test_both_contexts_stay_in_step_through_text() -> None:
    target, draft = TableModel(P), TableModel(Q)
    drafter = translated(draft, UNFILTERED)
    context = [0, 3, 1]
    drafter.prefill(context)
    counts = set()
    for round_ in run(target, drafter, context[:], chain=UNFILTERED, budget=60, enough=3):
        context += round_.tokens
        counts.add(round_.accepted)
        text = "".join(TEXTS[token] for token in context)
        read = "".join(DRAFT_TEXTS[token] for token in draft.tokens)
        assert text.startswith(read)
        assert len(text) - len(read) <= len(TEXTS[context[-1]]) + len(TEXTS[context[-2]])
    assert counts >= {0, 1, 2, 3}


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_after_any_verdict_it_goes_on_from_the_corrected_text(kept: int) -> None:
    drafter = translated(TableModel(Q), UNFILTERED)
    first = drafter.propose((0, 1), Past(), FixedLength(3), CHANCE)
    context = (0, 1, *first.tokens[:kept], 3)
    drafter.rewind(len(context) - 1)
    second = drafter.propose(context, Past(), FixedLength(2), CHANCE)
    anew = translated(TableModel(Q), UNFILTERED).propose(context, Past(), FixedLength(2), CHANCE)
    assert (len(second.tokens), second.tokens) == (2, anew.tokens)


def test_only_what_is_new_is_evaluated() -> None:
    model = TableModel(Q)
    drafter = translated(model, UNFILTERED)
    drafter.prefill((0, 1, 2))
    first = drafter.propose((0, 1, 2), Past(), FixedLength(2), CHANCE)
    context = (0, 1, 2, *first.tokens, 3)
    drafter.rewind(len(context) - 1)
    drafter.propose(context, Past(), FixedLength(1), CHANCE)
    assert model.calls == [(2, 0), (1, 1), (1, 1), (3, 1)]


def test_of_a_prompt_only_what_the_cache_does_not_hold_is_read() -> None:
    model = TableModel(Q)
    translated(model).prefill((3, 3, 4, 0, 1))
    translated(model).prefill((3, 3, 4, 2, 0))
    assert model.tokens == [3, 5, 6, 1]
    assert model.calls == [(4, 0), (1, 0)]


def test_the_prompt_is_cut_as_the_draft_cuts_it() -> None:
    model = TableModel(Q)
    drafter = translated(model)
    drafter.prefill((3, 3, 4, 0, 1))
    assert model.tokens == [3, 5, 6, 2]
    drafter.propose((3, 3, 4, 0, 1), Past(), FixedLength(1), CHANCE)
    assert model.tokens == [3, 5, 6, 2, 4]


def test_what_was_said_is_read_token_by_token_so_that_any_of_it_can_be_taken_back() -> None:
    model = TableModel(Q)
    drafter = translated(model)
    drafter.propose((3, 3, 0), Past(), FixedLength(1), CHANCE)
    assert model.tokens == [0, 5, 0, 5, 2]
    drafter.rewind(1)
    assert model.tokens == [0, 5]


def test_a_rewind_into_a_prompt_goes_back_to_a_control_token() -> None:
    model = TableModel(Q)
    drafter = translated(model)
    drafter.prefill((3, 4, 0, 1))
    drafter.rewind(3)
    assert model.tokens == [0, 5, 6]
    drafter.propose((3, 4, 0, 2), Past(), FixedLength(1), CHANCE)
    assert model.tokens == [0, 5, 6, 2, 1]


def test_a_text_begins_with_the_token_that_the_draft_wants() -> None:
    model = TableModel(Q)
    begun = replace(TRANSLATOR, beginnings=(4, 6))
    drafter = TranslatedDrafter(model, GREEDY, begun, to_target=TO_TARGET, vocabulary=4, capacity=99)
    drafter.prefill((4, 0, 1))
    assert model.tokens == [6, 2]
    drafter.rewind(0)
    drafter.prefill((0, 1))
    assert model.tokens == [6, 2]


def test_a_token_that_the_draft_cannot_read_is_skipped() -> None:
    silent = replace(TRANSLATOR, names={4: b""})
    model = TableModel(Q)
    drafter = TranslatedDrafter(model, GREEDY, silent, to_target=TO_TARGET, vocabulary=4, capacity=99)
    assert drafter.propose((4,), Past(), FixedLength(3), CHANCE).tokens == ()
    drafter.prefill((4, 0))
    drafter.propose((4, 0), Past(), FixedLength(1), CHANCE)
    drafter.rewind(2)
    assert len(drafter.propose((4, 0, 4), Past(), FixedLength(3), CHANCE).tokens) == 3
    assert model.calls[1:3] == [(1, 1), (1, 1)]
    assert model.tokens[0] == 2


def _banning() -> SamplingChain:
    return SamplingChain(temperature=1, top_k=0, top_p=1, min_p=0, logit_bias=tuple((i, -math.inf) for i in range(3)))


class Only3:
    """A mask that allows what the draft does not share."""

    def allowed(self, ids: Ids) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.equal(ids, 3)

    @property
    def may_end(self) -> bool:
        return False

    def after(self, token: int) -> Mask:
        return self


class NeverTwice:
    """A mask that forbids what was just said."""

    def __init__(self, last: int) -> None:
        self._last = last

    def allowed(self, ids: Ids) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.not_equal(ids, self._last)

    @property
    def may_end(self) -> bool:
        return False

    def after(self, token: int) -> Mask:
        return NeverTwice(token)


def test_a_mask_is_asked_about_the_drafted_prefix_in_the_target_s_ids() -> None:
    always_a = by_last_token([[9, 1, 8, 9, 0, 9, 9]] * 7)
    proposal = translated(TableModel(always_a)).propose((0,), Past(mask=NeverTwice(0)), FixedLength(4), CHANCE)
    assert proposal.tokens == (2, 0, 2, 0)


NOTHING_SHARED: list[tuple[LogitsOf, Callable[[], SamplingChain], Mask | None]] = [
    (by_last_token([[0, -np.inf, -np.inf, 1, -np.inf, 0, 0]] * 7), lambda: UNFILTERED, None),
    (Q, _banning, None),
    (Q, lambda: UNFILTERED, Only3()),
]


@pytest.mark.parametrize(("logits", "chain", "mask"), NOTHING_SHARED, ids=["strangers", "bias", "mask"])
def test_a_dead_end_of_the_draft_is_none_for_the_target(
    logits: LogitsOf, chain: Callable[[], SamplingChain], mask: Mask | None
) -> None:
    drafter = translated(TableModel(logits), chain())
    assert drafter.propose((0, 1), Past(mask=mask), FixedLength(4), CHANCE).tokens == ()
    assert not drafter.exhausted


@pytest.mark.parametrize(("capacity", "drafted"), [(1, 0), (3, 0), (4, 1), (6, 3)])
def test_a_full_draft_cache_ends_drafting_and_not_the_text(capacity: int, drafted: int) -> None:
    drafter = translated(TableModel(Q, capacity=capacity), UNFILTERED, capacity=capacity)
    drafter.prefill((0, 3, 1))
    proposals = drafter.propose((0, 3, 1), Past(), FixedLength(9), CHANCE)
    assert len(proposals.tokens) == drafted
    assert drafter.exhausted
    drafter.rewind(2)
    assert drafter.propose((0, 3, 1), Past(), FixedLength(9), CHANCE).tokens == ()


def test_how_sure_it_is_counts_shared_tokens_only() -> None:
    logits = by_last_token([[9, 1.5, 0.5, 9, -1, 9, 9]] * 7)
    greedy = translated(TableModel(logits), GREEDY).propose((0,), Past(), FixedLength(1), CHANCE)
    shared = np.exp([1.5, 0.5, -1])
    assert greedy.confidences == pytest.approx((shared.max() / shared.sum(),))
    sampled = translated(TableModel(logits), UNFILTERED).propose((0,), Past(), FixedLength(1), CHANCE)
    assert sampled.confidences == pytest.approx((float(np.square(shared / shared.sum()).sum()),))


def test_how_sure_it_is_counts_what_a_mask_allows_of_the_targets_ids() -> None:
    logits = by_last_token([[9, 1.5, 0.5, 9, -1, 9, 9]] * 7)
    drafter = translated(TableModel(logits), GREEDY)
    proposal = drafter.propose((0,), Past(mask=OneOf(0, 1)), FixedLength(1), CHANCE)
    assert proposal.tokens == (0,)
    assert proposal.confidences == pytest.approx((1 / (1 + math.exp(-1.5)),))
