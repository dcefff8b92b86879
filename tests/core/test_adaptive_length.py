"""The adaptive draft length: exact whatever it learns, and never a bad bargain."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pytest

from specdec_cli.core.costs import Costs
from specdec_cli.core.decode import Round, speculate
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.draft_length import LONGEST, AdaptiveLength
from specdec_cli.core.estimates import FIRST_SURVIVAL, DrafterEstimate
from specdec_cli.core.noise import ChanceSource, Noise
from specdec_cli.core.past import Past
from specdec_cli.core.verify import RULES, Kind, Proposal, Verdict
from specdec_cli.drafters.model import ModelDrafter
from tests.core.reference import plain_law
from tests.enumeration import Luck, SharedPaths, Text, fresh, text_law, total_variation
from tests.loops import GREEDY, IN_FLOAT64, drafter_of
from tests.toys import LogitsOf, TableModel, by_context, chained

IN_PAST = Past()
SURE_TOKEN = Distribution.of(np.ones(1), np.array([1]))
FREE = Costs((1.0,) * (LONGEST + 1))
MEMORY_BOUND = Costs(tuple(1 + 0.1 * n for n in range(LONGEST + 1)), {"model": (0.1,) * (LONGEST + 1)})
DEAR = Costs(tuple(float(1 + n) for n in range(LONGEST + 1)), {"model": (0.8,) * (LONGEST + 1)})
STEPPED = Costs(tuple(1.0 if n < 4 else 9.0 for n in range(LONGEST + 1)), {"model": (0.05,) * (LONGEST + 1)})


def adaptive_run(
    target: TableModel, draft: TableModel, costs: Costs, budget: int, noise: ChanceSource, rule: str = "token"
) -> Generator[Round, None, None]:
    length, sampled = AdaptiveLength(costs), not isinstance(noise, Noise)
    chain = IN_FLOAT64 if sampled else GREEDY
    drafter = drafter_of(draft, chain)
    return speculate(
        target,
        drafter,
        (0,),
        chain=chain,
        noise=noise,
        budget=budget,
        is_end=lambda _: False,
        enough=length,
        learn=length.learn,
        rule=RULES[rule],
    )


@pytest.mark.parametrize(("rule", "luck"), [("token", fresh), ("block", fresh), ("coupled", SharedPaths)])
@pytest.mark.parametrize("costs", [FREE, MEMORY_BOUND, DEAR], ids=["free", "memory-bound", "dear"])
def test_what_it_learns_never_touches_the_law(rule: str, luck: Luck, costs: Costs) -> None:
    p, q = by_context(1, 2), by_context(2, 2)

    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        return adaptive_run(TableModel(p), TableModel(q), costs, budget, noise, rule)

    assert total_variation(text_law(loop, (0,), 5, luck), plain_law(p, IN_FLOAT64, (0,), 5)) <= 1e-12


def greedy_rounds(target: LogitsOf, draft: LogitsOf, costs: Costs, budget: int = 400) -> list[Round]:
    return list(adaptive_run(TableModel(target), TableModel(draft), costs, budget, Noise(1)))


CIRCLE, OTHER = chained(0, 1, 2, vocabulary=4), chained(0, 2, 1, vocabulary=4)


def test_a_draft_that_is_always_right_drafts_as_long_as_may_be() -> None:
    rounds = greedy_rounds(CIRCLE, CIRCLE, FREE)
    assert max(round_.drafted for round_ in rounds[-5:]) == LONGEST


def test_a_draft_that_is_always_wrong_is_hardly_ever_tried() -> None:
    rounds = greedy_rounds(CIRCLE, OTHER, MEMORY_BOUND)
    assert sum(round_.drafted > 0 for round_ in rounds[50:]) <= 0.02 * len(rounds)


def test_where_verification_is_dear_nothing_is_drafted() -> None:
    rounds = greedy_rounds(CIRCLE, CIRCLE, DEAR, budget=60)
    assert sum(round_.drafted for round_ in rounds) == 0


def test_trying_again_costs_little_where_it_never_pays() -> None:
    rounds = greedy_rounds(CIRCLE, OTHER, DEAR, budget=2000)
    spent = sum(DEAR.verify(each.drafted + 1) + DEAR.draft("model", each.drafted, 40) - 1 for each in rounds)
    assert sum(round_.drafted > 0 for round_ in rounds) > 0
    assert spent <= 0.02 * len(rounds)


def test_a_block_ends_where_one_more_row_would_cost_a_jump() -> None:
    rounds = greedy_rounds(CIRCLE, CIRCLE, STEPPED)
    assert {round_.drafted for round_ in rounds[5:-1]} == {3}


def test_a_text_that_becomes_predictable_is_drafted_again() -> None:
    length = AdaptiveLength(MEMORY_BOUND)

    def played(overlap: float, rounds: int) -> list[int]:
        lengths = []
        for _ in range(rounds):
            proposal = Proposal(source="model")
            while not length(proposal):
                proposal = proposal.followed_by(1, SURE_TOKEN, 0.9)
            drafted = len(proposal.tokens)
            kept = drafted if overlap == 1 else 0
            overlaps = (overlap,) * min(kept + 1, drafted)
            length.learn(proposal, Verdict(kept, 1, Kind.BONUS if kept == drafted else Kind.CORRECTION, overlaps))
            lengths.append(drafted)
        return lengths

    assert sum(played(0.0, 60)[-20:]) <= 2
    assert np.mean(played(1.0, 200)[-50:]) > 5


def block(length: AdaptiveLength, confidences: list[float], *, ahead: bool) -> Proposal:
    """A block of tokens of which a drafter is so sure, known before each is drawn if `ahead`."""
    proposal = Proposal(source="lookup")
    for confidence in confidences:
        proposal = proposal.expecting(confidence) if ahead else proposal
        if length(proposal):
            break
        proposal = proposal.followed_by(1, SURE_TOKEN, confidence)
    return proposal


def begun(costs: Costs) -> AdaptiveLength:
    """A length whose text has a first word."""
    length = AdaptiveLength(costs)
    length.learn(Proposal(source="another"), Verdict(0, 1, Kind.BONUS, ()))
    return length


def test_the_first_word_of_a_text_is_drafted_where_much_pays_and_not_where_nearly_all_must_be_right() -> None:
    dear, cheap = (Costs(tuple(1 + slope * n for n in range(LONGEST + 1))) for slope in (0.7, 0.2))
    assert block(AdaptiveLength(dear), [0.95] * 4, ahead=False).tokens == ()
    assert len(block(begun(dear), [0.95] * 4, ahead=False).tokens) > 0
    assert len(block(AdaptiveLength(cheap), [0.95] * 4, ahead=False).tokens) > 0


def test_a_drafter_that_knows_how_sure_it_will_be_starts_only_where_that_pays() -> None:
    length = begun(Costs(tuple(1 + 0.6 * n for n in range(LONGEST + 1))))
    assert block(length, [0.1] * 4, ahead=False).tokens == (1,), "the first token shows it"
    assert block(length, [0.1] * 4, ahead=True).tokens == ()
    assert block(length, [0.95] * 4, ahead=True).tokens == (1, 1, 1, 1)


@pytest.mark.parametrize(("to_read", "starts"), [(0.1, True), (9.0, False)])
def test_what_an_idle_drafter_has_to_read_first_counts_against_a_start(to_read: float, starts: bool) -> None:
    length = AdaptiveLength(Costs(tuple(1 + 0.3 * n for n in range(LONGEST + 1)), {"lookup": (0.1, *[to_read] * 16)}))
    assert block(length, [0.95], ahead=False).tokens, "it has read all of the text so far"
    length.learn(Proposal(source="another"), Verdict(0, 1, Kind.BONUS, ()))
    drafted = block(length, [0.95] * 4, ahead=False).tokens
    assert bool(drafted) == starts
    length.learn(Proposal(source="lookup").followed_by(1, SURE_TOKEN, 0.95), Verdict(1, 1, Kind.BONUS, (1.0,)))
    assert block(length, [0.95] * 4, ahead=False).tokens, "blocks that follow each other need no more reading"


def test_where_recent_rounds_brought_much_a_dear_token_is_no_longer_worth_its_time() -> None:
    length = begun(Costs((1.0, 1.0, *(1 + 0.7 * n for n in range(1, LONGEST)))))
    assert len(block(length, [0.95] * 4, ahead=False).tokens) > 1
    one = Proposal(source="lookup").followed_by(1, SURE_TOKEN, 0.95)
    for _ in range(60):
        length.learn(one, Verdict(1, 1, Kind.BONUS, (1.0,)))
    assert block(length, [0.95] * 4, ahead=False).tokens == (1,)


def test_where_recent_rounds_lost_time_a_block_must_still_beat_plain_decoding() -> None:
    length = AdaptiveLength(Costs(tuple(1 + 1.0 * n for n in range(LONGEST + 1))))
    wrong = Proposal(source="another").followed_by(1, SURE_TOKEN, 0.9)
    for _ in range(60):
        length.learn(wrong, Verdict(0, 1, Kind.CORRECTION, (0.0,)))
    block_of_sure = [block(length, [0.9] * 4, ahead=ahead).tokens for ahead in (False, True)]
    assert block_of_sure == [(), ()]


@pytest.mark.parametrize(("kept_of_ten", "is_more"), [(9, True), (3, False)])
def test_what_a_rule_keeps_beyond_or_short_of_the_overlap_is_learned(kept_of_ten: int, is_more: bool) -> None:
    estimate = DrafterEstimate(40, 640)
    for round_ in range(400):
        estimate.learn([0.6], [0.6], accepted=int(round_ % 10 < kept_of_ten))
    assert estimate.acceptance(0.6) == pytest.approx(kept_of_ten / 10, abs=0.08)
    assert (estimate.survival(1) > 0.6) == is_more


def test_a_draft_that_goes_on_not_to_pay_waits_ever_longer_and_one_that_pays_begins_anew() -> None:
    estimate, waits = DrafterEstimate(40, 640), []
    for _ in range(6):
        for _ in range(estimate.wait):
            estimate.note(drafted=False, emitted=1, all_kept=False)
        estimate.note(drafted=True, emitted=1, all_kept=False)
        waits.append(estimate.wait)
    assert waits == [80, 160, 320, 640, 640, 640]
    estimate.note(drafted=True, emitted=2, all_kept=True)
    assert (estimate.wait, estimate.idle) == (40, 0)


def test_a_drafter_reads_what_was_said_without_it_and_its_own_last_token_if_all_was_kept() -> None:
    estimate = DrafterEstimate(40, 640)
    unseen = [estimate.unseen]
    for drafted, emitted, all_kept in [(True, 4, True), (False, 1, True), (False, 3, True), (True, 2, False)]:
        estimate.note(drafted=drafted, emitted=emitted, all_kept=all_kept)
        unseen.append(estimate.unseen)
    assert unseen == [1, 2, 3, 6, 1]


def test_what_was_seen_fades_while_a_drafter_idles_the_slower_the_more_often_it_came_back() -> None:
    estimate = DrafterEstimate(40, 640)

    def risen() -> float:
        """How much better a drafter that was always wrong is thought to be 100 rounds later."""
        for _ in range(60):
            estimate.learn([0.9], [0.0], accepted=0)
        estimate.note(drafted=True, emitted=1, all_kept=False)
        before = estimate.acceptance(0.9)
        for _ in range(100):
            estimate.note(drafted=False, emitted=1, all_kept=False)
        return estimate.acceptance(0.9) - before

    first, second, third = risen(), risen(), risen()
    assert first > 1.2 * second > 1.4 * third > 0
    for _ in range(4):
        estimate.note(drafted=True, emitted=1, all_kept=False)
    assert risen() == pytest.approx(first, rel=0.05)


def test_what_is_seen_at_one_place_counts_for_two_behind_it() -> None:
    estimate = DrafterEstimate(40, 640)
    for _ in range(20):
        estimate.learn([0.9], [0.0], accepted=0)
    one, two, three, four = (estimate.survival(place) for place in range(1, 5))
    assert one < two == three < four == FIRST_SURVIVAL


def test_no_chance_is_more_than_one() -> None:
    estimate = DrafterEstimate(40, 640)
    for _ in range(400):
        estimate.learn([0.2], [0.2], accepted=1)
    assert estimate.acceptance(0.99) == 1


def test_the_same_history_gives_the_same_lengths() -> None:
    lengths = [
        [round_.drafted for round_ in greedy_rounds(by_context(5, 6), by_context(6, 6), MEMORY_BOUND, 100)]
        for _ in range(2)
    ]
    assert lengths[0] == lengths[1]


def test_confidence_is_how_sure_q_is() -> None:
    model = TableModel(by_context(1, 5))
    drafter = ModelDrafter(model, IN_FLOAT64, vocabulary=5, capacity=99)
    asked: list[Proposal] = []

    def enough(proposal: Proposal) -> bool:
        asked.append(proposal)
        return len(proposal.tokens) == 3

    proposal = drafter.propose((0,), IN_PAST, enough, Noise(1).round(0, 0))
    assert asked[0].source == "model"
    for q, confidence in zip(proposal.distributions, proposal.confidences, strict=True):
        assert confidence == pytest.approx(float(((q.weights / q.total) ** 2).sum()))


NETWORK = Costs(
    (1.0, 1.58, 1.64, 1.8, *(1.95 + 0.12 * n for n in range(LONGEST - 3))),
    {"model": tuple(0.23 * (1 + 0.2 * n) for n in range(LONGEST + 1))},
)
"""A target behind a network: one token more costs little, but so does a plain step beside a long block."""


def test_one_lucky_block_does_not_make_the_next_one_look_too_dear() -> None:
    rule = AdaptiveLength(NETWORK)
    for drafted, accepted, confidence in ((1, 0, 0.5), (LONGEST, LONGEST, 0.97)):
        assert not rule(Proposal((), (), (), "model")), "there is a block"
        block = Proposal((0,) * drafted, (SURE_TOKEN,) * drafted, (confidence,) * drafted, "model")
        overlaps = (1.0,) * accepted + (0.0,) * (drafted - accepted)
        rule.learn(block, Verdict(accepted, 0, Kind.BONUS, overlaps))
    assert not rule(Proposal((), (), (), "model")), "and after a lucky one another"
