"""Where a text ends: at an end of generation, wherever in a block it comes, and at the budget."""

from __future__ import annotations

import numpy as np
import pytest

from specdec_cli.core.decode import Round
from specdec_cli.core.noise import Noise
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.top_k import Logits
from tests.loops import GREEDY, UNFILTERED, drafter_of, plain, run, speculative
from tests.statistical import emitted
from tests.toys import LogitsOf, ScriptedDrafter, TableModel, by_context, by_last_token, chained

LENGTHS = range(1, 9)
P, Q = by_context(1, 5), by_context(2, 5)
A, B, C, END = 0, 1, 2, 3
A_B_END = by_last_token(np.eye(4)[[B, END, C, C]] * 30)
"""Says B after A, the end after B, and C after everything else."""


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("draft", [A_B_END, chained(A, B, C, vocabulary=4), chained(A, C, B, vocabulary=4)])
def test_an_end_inside_a_block_cuts_the_text_there(length: int, draft: LogitsOf) -> None:
    target = TableModel(A_B_END)
    rounds = list(run(target, drafter_of(TableModel(draft)), enough=length, ends=[END]))
    assert emitted(rounds) == [B]
    assert [round_.ended for round_ in rounds] == [False] * (len(rounds) - 1) + [True]
    assert target.tokens == [A], "the cache holds the text without its last token"


@pytest.mark.parametrize("offset", range(9))
def test_a_drafted_end_is_cut_at_every_offset_of_a_block(offset: int) -> None:
    says = [1] * offset + [2] + [1] * 9
    logits = by_last_token(np.zeros((3, 3)))

    def target_logits(context: tuple[int, ...]) -> Logits:
        row = logits(context).copy()
        row[says[len(context) - 1]] = 30
        return row

    target = TableModel(target_logits)
    drafter = ScriptedDrafter(lambda context: says[len(context) - 1 :])
    (round_,) = run(target, drafter, enough=8, ends=[2])
    assert round_ == Round(
        drafted=min(offset, 8),
        accepted=offset,
        last=None,
        tokens=(1,) * offset,
        overlaps=(1.0,) * offset,
        ended=True,
        source="script",
    )
    assert target.tokens == [A, *[1] * offset][:-1]


@pytest.mark.parametrize("length", LENGTHS)
def test_an_end_that_only_the_draft_says_does_not_stop_the_text(length: int) -> None:
    draft = by_last_token(np.eye(4)[[END] * 4] * 30)
    target = chained(A, B, C, vocabulary=4)
    rounds = list(run(TableModel(target), drafter_of(TableModel(draft)), budget=9, enough=length, ends=[END]))
    assert emitted(rounds) == [B, C, A] * 3
    assert all(round_.drafted <= 1 and not round_.ended for round_ in rounds), "nothing is drafted after an end"


def test_an_end_as_the_very_first_token_emits_nothing() -> None:
    for loop in (
        plain(A_B_END, GREEDY, ends=[END]),
        speculative(A_B_END, A_B_END, GREEDY, enough=4, ends=[END]),
    ):
        (round_,) = loop((B,), 9, Noise(1))
        assert (round_.tokens, round_.ended, round_.last) == ((), True, None)


@pytest.mark.parametrize("budget", range(1, 11))
@pytest.mark.parametrize("chain", [GREEDY, UNFILTERED])
@pytest.mark.parametrize("draft", [P, Q])
def test_the_budget_is_met_exactly_and_no_useless_position_is_scored(
    budget: int, chain: SamplingChain, draft: LogitsOf
) -> None:
    target, left = TableModel(P), budget
    for round_ in run(target, drafter_of(TableModel(draft), chain), chain=chain, budget=budget, enough=8):
        assert target.calls[-1][1] <= left, "a row was asked for whose token does not fit the budget"
        left -= len(round_.tokens)
    assert left == 0


def test_an_empty_budget_evaluates_nothing() -> None:
    target = TableModel(P)
    assert list(run(target, drafter_of(TableModel(P)), budget=0)) == []
    assert target.evaluated == 0
