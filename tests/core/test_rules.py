"""The three rules in the whole loop: every one gives the texts of the target, and each wrong version does not."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pytest

from specdec_cli.core.decode import Round, StopRule
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import ChanceSource, SharedNoise
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.verify import RULES, BlockRule, Kind, Proposal, Rule, TokenRule
from specdec_cli.drafters.lookup import LookupDrafter
from tests.core.reference import chain_law, plain_law
from tests.core.test_exactness import CHAINS, EXACT, HISTORY_CHAINS, prefix_rules
from tests.enumeration import Luck, Paths, SharedPaths, Text, fresh, law_of, support, text_law, total_variation
from tests.loops import GREEDY, IN_FLOAT64, UNFILTERED, drafter_of, plain, run, speculative
from tests.statistical import emitted, follows
from tests.toys import LogitsOf, TableModel, by_context, by_last_token
from tests.wrong_samplers import WRONG_BLOCKS, PlainBlockRule

LUCK: dict[str, Luck] = {"block": fresh, "coupled": SharedPaths}
"""`test_exactness` is about the token rule."""
LENGTHS: list[StopRule | int] = [1, 2, 3, 4, *prefix_rules().values()]
ALL_CHAINS = {**CHAINS, **HISTORY_CHAINS}
LENGTH_NAMES = ["1", "2", "3", "4", *prefix_rules()]

P, Q = by_context(1, 3), by_context(2, 3)
FAR_P, FAR_Q = by_context(22, 3, spread=2), by_context(522, 3, spread=2)


def bias(target: LogitsOf, draft: LogitsOf, rule: Rule, enough: StopRule | int, budget: int, luck: Luck) -> float:
    """Total variation between the texts of the loop and those of the target."""
    loop = speculative(target, draft, IN_FLOAT64, enough=enough, ends={2}, rule=rule)
    return total_variation(text_law(loop, (0,), budget, luck), plain_law(target, IN_FLOAT64, (0,), budget, {2}))


@pytest.mark.parametrize("enough", LENGTHS, ids=LENGTH_NAMES)
@pytest.mark.parametrize("name", ["block", "coupled"])
def test_every_rule_gives_the_law_of_the_target_for_any_draft_length(name: str, enough: StopRule | int) -> None:
    assert bias(FAR_P, FAR_Q, RULES[name], enough, 5, LUCK[name]) <= EXACT


@pytest.mark.parametrize("chain", ALL_CHAINS.values(), ids=ALL_CHAINS)
@pytest.mark.parametrize("name", ["block", "coupled"])
def test_every_sampler_goes_with_every_rule(name: str, chain: SamplingChain) -> None:
    target, draft = by_context(3, 4), by_context(4, 4)
    loop = speculative(target, draft, chain, enough=3, rule=RULES[name])
    law = plain_law(target, chain, (0, 1), 3)
    assert total_variation(text_law(loop, (0, 1), 3, LUCK[name]), law) <= EXACT


@pytest.mark.parametrize("name", ["block", "coupled"])
def test_prompt_lookup_goes_with_every_rule(name: str) -> None:
    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        models = TableModel(P), LookupDrafter()
        return run(*models, prompt, chain=IN_FLOAT64, noise=noise, budget=budget, rule=RULES[name])

    prompt = (0, 1, 0, 1, 1, 0, 1)
    law = plain_law(P, IN_FLOAT64, prompt, 4)
    assert total_variation(text_law(loop, prompt, 4, LUCK[name]), law) <= EXACT


@pytest.mark.parametrize("length", [2, 3])
@pytest.mark.parametrize("name", WRONG_BLOCKS)
def test_enumeration_rejects_each_wrong_block_rule(name: str, length: int) -> None:
    assert bias(FAR_P, FAR_Q, WRONG_BLOCKS[name].rule, length, 4, fresh) > 0.01
    assert bias(FAR_P, FAR_Q, PlainBlockRule(), length, 4, fresh) <= EXACT


@pytest.mark.parametrize("rule", [TokenRule(), BlockRule()])
def test_noise_that_a_place_keeps_makes_the_token_and_the_block_rule_wrong(rule: Rule) -> None:
    assert bias(P, Q, rule, 3, 4, SharedPaths) > 0.01


MEMORYLESS_P, MEMORYLESS_Q = by_last_token([[1.0, 0.2, -0.5, 0.4]] * 4), by_last_token([[0.2, 1.2, 0.3, -0.9]] * 4)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("seed", [1, 2])
def test_statistics_pass_every_rule_with_its_own_noise(name: str, seed: int) -> None:
    rule = RULES[name]
    loop = speculative(MEMORYLESS_P, MEMORYLESS_Q, UNFILTERED, enough=3, rule=rule)
    assert follows(emitted(loop((0,), 4000, rule.noise(seed))), chain_law(UNFILTERED, MEMORYLESS_P((0,))))


def block_of(p: LogitsOf, q: LogitsOf, rule: Rule, length: int) -> tuple[float, list[tuple[int, ...]]]:
    """Expected accepted tokens of one block, and every verdict of every path of its luck, in order."""
    verdicts = []

    def one(paths: Paths) -> int:
        proposal = Proposal()
        for position in range(length):
            law = IN_FLOAT64.distribution(q((0, *proposal.tokens)))
            proposal = proposal.followed_by(paths.draft(position, law), law)
        verdict = rule.verify(proposal, lambda at: IN_FLOAT64.distribution(p((0, *proposal.tokens[:at]))), paths)
        verdicts.append((*proposal.tokens, verdict.accepted, verdict.token))
        return verdict.accepted

    return sum(accepted * chance for accepted, chance in law_of(one).items()), verdicts


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_a_block_keeps_at_least_as_much_as_its_tokens_one_by_one(length: int) -> None:
    gains = []
    for pair in range(12):
        p, q = by_context(100 + pair, 2 + pair % 2, spread=2), by_context(200 + pair, 2 + pair % 2, spread=2)
        token, _ = block_of(p, q, TokenRule(), length)
        gains.append(block_of(p, q, BlockRule(), length)[0] - token)
    assert min(gains) >= -1e-12
    assert max(gains) <= 1e-12 if length == 1 else max(gains) > 0.01


@pytest.mark.parametrize("seed", range(20))
def test_the_block_rule_decides_as_the_one_that_is_written_down(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for round_ in range(20):
        laws = [Distribution.of(rng.dirichlet(np.full(6, 0.5))) for _ in range(9)]
        chance = BlockRule().noise(seed).round(round_, 0)
        tokens = tuple(chance.draft(at, q) for at, q in enumerate(laws[:4]))
        proposal = Proposal(tokens, tuple(laws[:4]))
        verdict = BlockRule().verify(proposal, laws[4:].__getitem__, chance)
        plainly = PlainBlockRule().verify(proposal, laws[4:].__getitem__, chance)
        assert (verdict.accepted, verdict.token, verdict.kind) == (plainly.accepted, plainly.token, plainly.kind)
        assert len(verdict.overlaps) == min(verdict.accepted + 1, 4)


def test_the_block_rule_asks_for_no_row_behind_a_token_that_the_target_never_says() -> None:
    asked: set[int] = set()
    never, law = Distribution.one_hot(3), Distribution.of(np.array([0.5, 0.1, 0.3, 0.1]))

    def target(position: int) -> Distribution:
        asked.add(position)
        return law

    chance = BlockRule().noise(1).round(0, 0)
    absent = Distribution.of(np.ones(1), np.array([7]))
    verdict = BlockRule().verify(Proposal((3, 7, 3), (never, absent, never)), target, chance)
    assert verdict.accepted <= 1
    assert asked <= {0, 1}


@pytest.mark.parametrize("name", RULES)
def test_at_temperature_0_all_rules_say_the_same(name: str) -> None:
    wanted = emitted(plain(P, GREEDY)((0,), 60, RULES["token"].noise(1)))
    loop = speculative(P, Q, GREEDY, enough=4, rule=RULES[name])
    assert emitted(loop((0,), 60, RULES[name].noise(2))) == wanted


@pytest.mark.parametrize("chain", ALL_CHAINS.values(), ids=ALL_CHAINS)
def test_the_coupled_rule_says_the_same_for_any_draft_any_length_and_none(chain: SamplingChain) -> None:
    target, rule, noise = by_context(21, 6), RULES["coupled"], SharedNoise(1)
    wanted = emitted(plain(target, chain)((0,), 40, noise))
    for draft in (by_context(22, 6), target, by_context(23, 6, spread=9), by_context(24, 5)):
        for enough in (1, 8, prefix_rules()["after token 1"]):
            assert emitted(speculative(target, draft, chain, enough=enough, rule=rule)((0,), 40, noise)) == wanted
    looked_up = run(TableModel(target), LookupDrafter(), chain=chain, budget=40, noise=noise, rule=rule)
    assert emitted(looked_up) == wanted
    greedy = run(TableModel(target), drafter_of(TableModel(target)), chain=chain, budget=40, noise=noise, rule=rule)
    assert emitted(greedy) == wanted


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("length", [1, 4, 8])
def test_a_draft_equal_to_the_target_is_always_kept(name: str, length: int) -> None:
    rule = RULES[name]
    rounds = list(speculative(P, P, UNFILTERED, enough=length, rule=rule)((0,), 50, rule.noise(3)))
    assert all(round_.accepted == round_.drafted and round_.last is Kind.BONUS for round_ in rounds)


def test_the_coupled_rule_agrees_at_least_as_often_as_its_bound() -> None:
    p, q = (IN_FLOAT64.distribution(model((0,))) for model in (MEMORYLESS_P, MEMORYLESS_Q))
    rounds = [SharedNoise(seed).round(0, 0) for seed in range(4000)]
    agreed = np.mean([chance.draft(0, q) == chance.emit(0, p) for chance in rounds])
    distance = 1 - p.overlap(q)
    assert (1 - distance) / (1 + distance) - 0.05 < agreed <= 1 - distance + 0.05
    assert sum(probability for _, probability in support(p)) == pytest.approx(1)
