"""What a watched run shows is what decided, and watching changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from specdec_cli.core.costs import Costs
from specdec_cli.core.decode import Round, autoregress, speculate
from specdec_cli.core.draft_length import AdaptiveLength, FixedLength
from specdec_cli.core.step import Observer, RoundSeconds, Step
from specdec_cli.core.verify import RULES, Kind
from tests.loops import UNFILTERED, drafter_of
from tests.toys import TableModel, by_context

VOCABULARY = 7
NOTHING = RoundSeconds(0, 0, 0)
CHEAP = Costs((1.0, 1.02, 1.04, 1.06, 1.08, 1.1))


def _watched(rule: str, *, adaptive: bool = False, plain: bool = False) -> tuple[list[Round], list[Step]]:
    """A run of 60 tokens that is watched."""
    steps: list[Step] = []
    length = AdaptiveLength(CHEAP) if adaptive else None
    observer = Observer(steps.append, length)
    rounds: list[Round] = []
    for round_ in _loop(rule, length, plain=plain, observer=observer):
        observer.finish(1 + sum(len(each.tokens) for each in rounds), round_, (), NOTHING)
        rounds.append(round_)
    return rounds, steps


def _loop(
    rule: str, length: AdaptiveLength | None, *, plain: bool, observer: Observer | None = None
) -> Iterator[Round]:
    target, draft = (TableModel(by_context(seed, VOCABULARY)) for seed in (1, 2))
    noise = RULES[rule].noise(5)
    common: dict[str, Any] = {
        "chain": UNFILTERED,
        "noise": noise if observer is None else observer.witness(noise),
        "budget": 60,
        "is_end": lambda _: False,
        "watch": None if observer is None else observer.see,
    }
    if plain:
        return autoregress(target, [0], **common)
    learn = None if length is None else length.learn
    drafter = drafter_of(draft, UNFILTERED)
    enough = length or FixedLength(4)
    return speculate(target, drafter, [0], **common, enough=enough, learn=learn, rule=RULES[rule])


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_a_watched_run_says_what_an_unwatched_one_says(rule: str, adaptive: bool, plain: bool) -> None:
    length = AdaptiveLength(CHEAP) if adaptive else None
    assert _watched(rule, adaptive=adaptive, plain=plain)[0] == list(_loop(rule, length, plain=plain))


@pytest.mark.parametrize("rule", RULES)
def test_each_step_has_p_of_every_examined_position_and_of_the_last_token(rule: str) -> None:
    _, steps = _watched(rule)
    for step in steps:
        assert len(step.targets) == step.round.accepted + 1
        pairs = zip(step.targets, step.proposal.distributions, strict=False)
        assert [p.overlap(q) for p, q in pairs] == pytest.approx(step.round.overlaps)
    assert {step.round.last for step in steps} == {Kind.CORRECTION, Kind.BONUS}


def test_the_token_rule_keeps_by_p_over_q_until_the_first_draw_above_it() -> None:
    _, steps = _watched("token")
    for step in steps:
        examined = step.round.accepted + (step.round.last is Kind.CORRECTION)
        assert list(step.decisions) == list(range(examined))
        for position, decision in step.decisions.items():
            token, q = step.proposal.tokens[position], step.proposal.distributions[position]
            ratio = step.targets[position].at(token) / q.at(token)
            assert decision.probability == pytest.approx(min(1, ratio))
            assert decision.kept == (decision.draw is None or decision.draw < decision.probability)
            assert decision.kept == (position < step.round.accepted)


def test_the_block_rule_goes_backwards_to_the_first_draw_below_its_probability() -> None:
    _, steps = _watched("block")
    for step in steps:
        asked = list(step.decisions)
        assert asked == sorted(asked, reverse=True)
        assert all(not step.decisions[position].kept for position in asked if position >= step.round.accepted)
        if step.round.accepted:
            assert step.decisions[step.round.accepted - 1].kept
    assert any(len(step.decisions) > 1 for step in steps)


def test_the_coupled_rule_decides_by_drawing_alone() -> None:
    _, steps = _watched("coupled")
    assert all(not step.decisions for step in steps)
    assert all(step.emission is not None and step.emission.draw is None for step in steps)


def test_the_last_token_is_what_its_law_has_at_its_draw() -> None:
    for rule in ("token", "block"):
        for step in _watched(rule)[1]:
            assert step.emission is not None
            assert step.emission.draw is not None
            assert step.emission.law.draw(step.emission.draw) == step.round.tokens[-1]


def test_a_correction_comes_from_what_p_has_more_than_q() -> None:
    corrected = [step for step in _watched("token")[1] if step.round.last is Kind.CORRECTION]
    assert corrected
    for step in corrected:
        p, q = step.targets[-1], step.proposal.distributions[step.round.accepted]
        expected, law = p.residual(q), step.emission.law if step.emission else p
        assert [law.at(token) for token in range(VOCABULARY)] == [expected.at(token) for token in range(VOCABULARY)]


def test_steps_count_rounds_and_places() -> None:
    rounds, steps = _watched("block")
    assert [step.index for step in steps] == list(range(len(rounds)))
    assert [step.place for step in steps] == [1 + sum(len(r.tokens) for r in rounds[:i]) for i in range(len(rounds))]
    assert [step.round for step in steps] == rounds


def test_a_fixed_length_expects_nothing() -> None:
    assert all(step.outlook is None for step in _watched("block")[1])


def test_the_adaptive_length_says_what_it_expected_of_each_block() -> None:
    _, steps = _watched("block", adaptive=True)
    drafted = [step for step in steps if step.proposal.tokens]
    assert drafted
    for step in steps:
        outlook, length = step.outlook, len(step.proposal.tokens)
        assert outlook is not None
        assert len(outlook.kept) == length
        assert list(outlook.kept) == sorted(outlook.kept, reverse=True)
        assert outlook.tokens == pytest.approx(1 + sum(outlook.kept))
        assert outlook.cost == pytest.approx(CHEAP.verify(length + 1))
        assert outlook.gain == pytest.approx(outlook.tokens - outlook.rate * outlook.cost)
        assert outlook.rate >= 1
