"""Where texts part: a near-tie is explained by what rounding was measured to be, anything else is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specdec_cli.audit.answers import Answer, Answers
from specdec_cli.audit.coupled import behind, coupled_check
from specdec_cli.audit.forks import Fork, explain, find_fork
from specdec_cli.audit.greedy import greedy_check
from specdec_cli.audit.passes import difference, evaluate
from specdec_cli.audit.sameness import Sameness
from specdec_cli.catalog import Pair
from specdec_cli.core.noise import SharedNoise
from specdec_cli.core.top_k import Logits
from specdec_cli.session import Session
from tests.audit.toy_audits import session_of
from tests.toy_gguf import memoryless_toy

PROMPT = list(b"fork")


def lead(_answer: Answer, _at: int, row: Logits, token: int) -> float:
    return float(row.max() - row[token])


def both(session: Session) -> tuple[Answer, Answer]:
    answers = Answers(session, 1)
    plain = answers.ask(PROMPT, answers.greedy, max_tokens=12, draft_tokens=0)
    return plain, answers.ask(PROMPT, answers.greedy, max_tokens=12, draft_tokens=3)


def test_equal_texts_do_not_part(bad_draft_pair: Pair) -> None:
    with session_of(bad_draft_pair) as session:
        assert find_fork(*both(session)) is None


@pytest.mark.parametrize("at", [0, 1, 5, 11])
def test_another_token_that_no_rounding_explains_is_a_fault(bad_draft_pair: Pair, at: int) -> None:
    with session_of(bad_draft_pair) as session:
        plain, drafted = both(session)
        forged = replace(drafted, tokens=(*drafted.tokens[:at], drafted.tokens[at] ^ 1, *drafted.tokens[at + 1 :]))
        assert find_fork(plain, forged) == at
        fork = explain(plain, forged, at, lead, 1e-3, prompt=0, draft_tokens=3)
        row = evaluate(drafted.target, PROMPT, plain.tokens[:at], (1,))[-1]
        assert fork.gap == pytest.approx(float(row.max() - row[forged.tokens[at]]))
        assert fork.gap > 0.05
        assert fork.difference < 0.02
        assert not fork.explained


def test_a_tie_is_explained(tmp_path: Path) -> None:
    path = memoryless_toy({}, {65: 1.0, 66: 1.0}).write(tmp_path / "tie.gguf")
    with session_of(Pair(path, path)) as session:
        plain, drafted = both(session)
        forged = replace(drafted, tokens=(66, *drafted.tokens[1:]))
        assert explain(plain, forged, 0, lead, 0.0, prompt=0, draft_tokens=3).explained


def test_a_gap_beyond_what_rounding_moves_is_not_explained() -> None:
    fork = Fork(0, 4, 7, gap=0.2, difference=0.05, tolerance=0.3)
    assert fork.explained
    assert not replace(fork, tolerance=0.1).explained


@pytest.mark.parametrize("sizes", [(1,), (3,), (2, 1, 5)])
def test_passes_of_any_size_see_the_same_text(bad_draft_pair: Pair, sizes: tuple[int, ...]) -> None:
    with session_of(bad_draft_pair) as session:
        context = both(session)[1].target
        text = list(b"passes of several sizes")
        rows, whole = evaluate(context, PROMPT, text, sizes), evaluate(context, PROMPT, text, (2,))
        assert len(rows) == len(text) + 1
        assert max(map(difference, rows, whole)) < 0.01
        assert difference(rows[3], rows[4]) > 0.1, "or the sameness would show nothing"


def test_a_shift_of_all_logits_is_no_difference() -> None:
    row = np.arange(8, dtype=np.float32)
    assert difference(row, row + 3) == pytest.approx(0)
    row[3] = -np.inf
    assert difference(row, row) == 0


def test_what_wins_the_race_is_not_behind_and_all_else_is() -> None:
    law = np.random.default_rng(1).dirichlet(np.ones(300))
    chance = SharedNoise(5).round(0, 9)
    behinds = [behind(law, chance, token) for token in range(20)] + [behind(law, chance, int(law.argmax()))]
    assert sum(each == 0 for each in (behind(law, chance, token) for token in range(300))) == 1
    assert max(behinds) > 0.5


@pytest.mark.parametrize("check", [greedy_check, coupled_check])
def test_nothing_compared_is_nothing_found(attention_pair: Pair, check: Callable[..., Sameness]) -> None:
    with session_of(attention_pair) as session:
        assert check(Answers(session, 1), [PROMPT], 4).outcome() is None
