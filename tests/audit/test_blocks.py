"""What the audit says of a block is what the engine's rules do, and it contradicts the wrong ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from specdec_cli.audit.blocks import Block
from specdec_cli.audit.laws import probabilities
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.verify import RULES, Proposal, Rule, Verdict
from specdec_cli.core.witness import Witness, WitnessedRound
from tests.wrong_samplers import WRONG_BLOCKS, WRONG_RULES

SIZE, LENGTH = 5, 3


def laws(seed: int) -> list[Distribution]:
    generator = np.random.default_rng(seed)
    return [Distribution.of(generator.gamma(0.7, size=SIZE)) for _ in range(LENGTH + 1)]


def judged(rule: Rule, name: str) -> Iterator[tuple[Block, WitnessedRound, Verdict]]:
    """Many blocks of a draft, and what `rule` made of them."""
    p, q = laws(1), laws(2)
    for seed in range(300):
        chance = Witness(rule.noise(seed)).round(0, 0)
        tokens = tuple(chance.draft(position, q[position]) for position in range(LENGTH))
        verdict = rule.verify(Proposal(tokens, tuple(q[:LENGTH])), p.__getitem__, chance)
        known = [probabilities(each, SIZE) for each in p[: verdict.accepted + 1]]
        yield Block(name, tokens, [probabilities(each, SIZE) for each in q[:LENGTH]], known), chance, verdict


def is_right(block: Block, chance: WitnessedRound) -> bool:
    assert chance.emission is not None
    return block.agrees(chance.decisions) and block.ends_with(probabilities(chance.emission.law, SIZE))


@pytest.mark.parametrize("name", ["token", "block"])
def test_right_rules_agree_in_every_block(name: str) -> None:
    found = list(judged(RULES[name], name))
    assert all(is_right(block, chance) for block, chance, _ in found)
    assert all(block.last[verdict.token] > 0 for block, _, verdict in found)
    assert {block.kept for block, *_ in found} == {0, 1, 2, 3}


@pytest.mark.parametrize("name", WRONG_RULES)
def test_a_wrong_token_rule_is_contradicted(name: str) -> None:
    assert not all(is_right(block, chance) for block, chance, _ in judged(WRONG_RULES[name], "token"))


@pytest.mark.parametrize("name", WRONG_BLOCKS)
def test_a_wrong_block_rule_is_contradicted(name: str) -> None:
    assert not all(is_right(block, chance) for block, chance, _ in judged(WRONG_BLOCKS[name].rule, "block"))


@pytest.mark.parametrize("name", ["token", "block"])
def test_the_first_token_is_kept_as_often_as_stated(name: str) -> None:
    found = [(block.kept > 0, block.chances[0]) for block, *_ in judged(RULES[name], name)]
    surprise = sum(kept - chance for kept, chance in found)
    deviation = sum(chance * (1 - chance) for _, chance in found) ** 0.5
    assert abs(surprise) < 4 * deviation


def test_of_a_rejected_block_no_more_is_said_than_is_known() -> None:
    rejected = next(block for block, *_ in judged(RULES["block"], "block") if block.kept == 0)
    assert len(rejected.chances) == 1
    assert rejected.agrees({})
