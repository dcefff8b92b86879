"""A table of n-grams drafts by its own distribution, and the text stays the target's."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pytest

from specdec_cli.core.decode import Round
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.ngram_counts import count, observe
from specdec_cli.core.noise import ChanceSource, Noise
from specdec_cli.core.past import Past
from specdec_cli.core.verify import RULES, Proposal
from specdec_cli.drafters.table import TableDrafter, TableModel
from tests.core.reference import plain_law
from tests.drafters.masks import InTurn
from tests.enumeration import Luck, SharedPaths, Text, fresh, text_law, total_variation
from tests.loops import GREEDY, IN_FLOAT64, run
from tests.toys import TableModel as Target
from tests.toys import by_context

TABLE = count(observe([0, 1, 2, 1, 2, 0, 1, 2, 2, 1], 3), 4)
CHANCE = Noise(0).round(0, 0)


@pytest.mark.parametrize(("rule", "luck"), [("token", fresh), ("block", fresh), ("coupled", SharedPaths)])
@pytest.mark.parametrize("vocabulary", [3, 4, 5])
def test_the_text_has_the_law_of_the_target_under_every_rule(rule: str, luck: Luck, vocabulary: int) -> None:
    p = by_context(1, vocabulary)

    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        drafter = TableDrafter(TABLE, IN_FLOAT64, vocabulary=vocabulary)
        return run(Target(p), drafter, prompt, chain=IN_FLOAT64, budget=budget, enough=2, noise=noise, rule=RULES[rule])

    assert total_variation(text_law(loop, (0,), 3, luck), plain_law(p, IN_FLOAT64, (0,), 3)) <= 1e-12


def test_it_draws_from_the_row_of_what_it_drafted_before() -> None:
    proposal = TableDrafter(TABLE, IN_FLOAT64, vocabulary=4).propose((0, 1), Past(), FixedLength(3), CHANCE)
    text = [0, 1]
    for token, q in zip(proposal.tokens, proposal.distributions, strict=True):
        expected = np.exp(TABLE.logits(text).astype(np.float64))
        assert [q.at(each) for each in range(4)] == pytest.approx(expected.tolist(), rel=1e-5)
        text.append(token)
    assert proposal.source == "table"


def test_where_a_look_is_not_free_it_is_asked_for_a_token_first() -> None:
    asked: list[tuple[int, int]] = []

    def enough(proposal: Proposal) -> bool:
        asked.append((len(proposal.tokens), len(proposal.confidences)))
        return len(proposal.tokens) == 2

    drafter = TableDrafter(TABLE, IN_FLOAT64, vocabulary=4, is_free=False)
    assert len(drafter.propose((0, 1), Past(), enough, CHANCE).tokens) == 2
    assert asked == [(0, 0), (1, 1), (2, 2)]


def test_how_sure_it_is_is_known_before_a_token_is_drawn() -> None:
    asked: list[tuple[int, int]] = []

    def enough(proposal: Proposal) -> bool:
        asked.append((len(proposal.tokens), len(proposal.confidences)))
        return len(proposal.tokens) == 2

    proposal = TableDrafter(TABLE, IN_FLOAT64, vocabulary=4).propose((0, 1), Past(), enough, CHANCE)
    assert asked == [(0, 1), (1, 2), (2, 3)]
    for q, confidence in zip(proposal.distributions, proposal.confidences, strict=False):
        assert confidence == pytest.approx(q.collision)


def test_what_it_peeked_at_is_no_part_of_the_text() -> None:
    drafter = TableDrafter(TABLE, GREEDY, vocabulary=4)
    assert drafter.propose((0, 1), Past(), FixedLength(0), CHANCE).tokens == ()
    again = drafter.propose((0, 1, 2), Past(), FixedLength(2), CHANCE)
    assert (
        again.tokens
        == TableDrafter(TABLE, GREEDY, vocabulary=4).propose((0, 1, 2), Past(), FixedLength(2), CHANCE).tokens
    )


def test_greedy_it_says_what_followed_most_often() -> None:
    drafter = TableDrafter(TABLE, GREEDY, vocabulary=4)
    proposal = drafter.propose((0, 1), Past(), FixedLength(1), CHANCE)
    assert (proposal.tokens, proposal.distributions[0].certain) == ((2,), 2)
    assert isinstance(proposal.distributions[0], Distribution)


def test_a_mask_restricts_what_it_says() -> None:
    past = Past(mask=InTurn(3, 0))
    assert TableDrafter(TABLE, GREEDY, vocabulary=4).propose((0, 1), past, FixedLength(2), CHANCE).tokens == (3, 0)


def test_where_a_mask_allows_nothing_that_it_knows_the_block_ends() -> None:
    past = Past(mask=InTurn(3, 9))
    assert TableDrafter(TABLE, GREEDY, vocabulary=4).propose((0, 1), past, FixedLength(4), CHANCE).tokens == (3,)


def test_rows_after_a_rewind_are_those_of_the_shorter_text() -> None:
    model = TableModel(TABLE)
    model.extend([0, 1, 2, 2], rows=0)
    model.rewind(2)
    row = model.extend([], rows=1)[0]
    assert (model.length, row.tolist()) == (2, TABLE.logits((0, 1)).tolist())


def test_several_rows_are_those_behind_each_token() -> None:
    rows = TableModel(TABLE).extend([0, 1, 2], rows=2)
    assert [row.tolist() for row in rows] == [TABLE.logits((0, 1)).tolist(), TABLE.logits((0, 1, 2)).tolist()]
