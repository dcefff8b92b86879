from __future__ import annotations

from dataclasses import replace

import pytest

from specdec_cli.core.decode import Round
from specdec_cli.core.verify import Kind

FULL = Round(drafted=4, accepted=4, last=Kind.BONUS, tokens=(5, 6, 7, 8, 9), overlaps=(0.1, 0.2, 0.3, 0.4))
PART = Round(drafted=4, accepted=2, last=Kind.CORRECTION, tokens=(5, 6, 7), overlaps=(0.1, 0.2, 0.3))


def test_a_cut_that_cuts_nothing_is_the_same_round() -> None:
    assert FULL.cut(5) == FULL
    assert FULL.cut(9) == FULL


def test_a_cut_inside_the_accepted_tokens_forgets_the_drafts_behind_it() -> None:
    assert FULL.cut(2) == Round(drafted=2, accepted=2, last=None, tokens=(5, 6), overlaps=(0.1, 0.2))
    assert PART.cut(0) == Round(drafted=0, accepted=0, last=None, tokens=(), overlaps=())


def test_a_cut_of_the_last_token_alone_keeps_what_was_examined() -> None:
    assert FULL.cut(4) == replace(FULL, last=None, tokens=(5, 6, 7, 8))
    assert PART.cut(2) == replace(PART, last=None, tokens=(5, 6))


def test_a_cut_keeps_what_was_rejected_only_behind_all_that_was_accepted() -> None:
    rejecting = replace(PART, rejected=(8, 9))
    assert rejecting.cut(2).rejected == (8, 9)
    assert rejecting.cut(1).rejected == ()


@pytest.mark.parametrize("round_", [FULL, PART])
@pytest.mark.parametrize("count", range(6))
def test_a_cut_round_still_adds_up(round_: Round, count: int) -> None:
    cut = round_.cut(count)
    assert len(cut.kinds) == len(cut.tokens) == min(count, len(round_.tokens))
    assert 0 <= cut.accepted <= len(cut.overlaps) <= cut.drafted


def test_kinds_name_each_emitted_token() -> None:
    assert FULL.kinds == (Kind.ACCEPTED,) * 4 + (Kind.BONUS,)
    assert PART.kinds == (Kind.ACCEPTED,) * 2 + (Kind.CORRECTION,)
