"""Each sampler that is known to be wrong, put in the place of the engine's own, fails the audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from specdec_cli import drafting
from specdec_cli.audit.answers import Answers
from specdec_cli.audit.outcome import Outcome
from specdec_cli.audit.prompts import PROMPTS
from specdec_cli.audit.sampling import Sampling
from specdec_cli.catalog import Pair
from specdec_cli.core import verify
from specdec_cli.core.noise import ChanceSource, Noise, RoundNoise
from specdec_cli.core.scores import Scores
from specdec_cli.core.top_k import Logits
from specdec_cli.core.verify import RULES, BlockRule, CoupledRule, TokenRule
from specdec_cli.llama.context import Context
from tests.audit.toy_audits import SHORT, audited, failed, session_of
from tests.llama.test_lossless import P, Q
from tests.toy_gguf import attention_toy, memoryless_toy
from tests.wrong_samplers import WRONG_BLOCKS, WRONG_PROPOSALS, WRONG_RULES

SAMPLES = 120


@pytest.fixture(scope="module")
def memoryless(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Two laws that disagree, where tokens that the draft makes up for matter."""
    folder = tmp_path_factory.mktemp("audit")
    return Pair(memoryless_toy({}, P).write(folder / "p.gguf"), memoryless_toy({}, Q).write(folder / "q.gguf"))


@pytest.fixture(scope="module")
def sharp(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A draft that is sure of itself now and then."""
    folder = tmp_path_factory.mktemp("audit")
    return Pair(attention_toy(6.0).write(folder / "target.gguf"), attention_toy(3.5).write(folder / "draft.gguf"))


def sampled(pair: Pair, samples: int = SAMPLES) -> Outcome:
    with session_of(pair) as session:
        answers = Answers(session, 1)
        check = Sampling(answers, [answers.prompt(text) for text in PROMPTS], samples)
        assert list(check.work())
        outcome = check.outcome()
        assert outcome is not None
        return outcome


@pytest.mark.parametrize("pair", ["memoryless", "sharp"])
def test_the_right_samplers_pass(pair: str, request: pytest.FixtureRequest) -> None:
    outcome = sampled(request.getfixturevalue(pair), 240)
    assert outcome.passed, outcome.words
    assert outcome.figures["drafted"] > 300
    assert outcome.figures["offset"] < 1e-5


@pytest.mark.parametrize("name", WRONG_RULES)
def test_a_wrong_token_rule_is_caught(memoryless: Pair, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verify.RULES, "token", WRONG_RULES[name])
    assert "(token)" in sampled(memoryless).words


@pytest.mark.parametrize("name", WRONG_BLOCKS)
def test_a_wrong_block_rule_is_caught(memoryless: Pair, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verify.RULES, "block", WRONG_BLOCKS[name].rule)
    assert "(block)" in sampled(memoryless).words


@pytest.mark.parametrize("name", WRONG_PROPOSALS)
def test_a_wrong_drafter_is_caught(sharp: Pair, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "ModelDrafter", WRONG_PROPOSALS[name])
    assert "drafted tokens" in sampled(sharp, 240).words


class RepeatedNoise(TokenRule):
    """Luck that is keyed by the position in the block alone."""

    def noise(self, seed: int) -> ChanceSource:
        return _SameRound(seed)


class _SameRound(Noise):
    def round(self, index: int, start: int) -> RoundNoise:
        return super().round(0, start)


def test_luck_that_is_used_twice_is_caught(memoryless: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(verify.RULES, "token", RepeatedNoise())
    outcome = sampled(memoryless)
    assert "luck that came twice" in outcome.words
    assert not outcome.passed


class FreshlyCoupled(CoupledRule):
    """The coupled rule with luck of its own in each round."""

    def noise(self, seed: int) -> ChanceSource:
        return Noise(seed)


def test_a_coupled_rule_whose_luck_is_not_the_places_is_caught(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(verify.RULES, "coupled", FreshlyCoupled())
    assert "coupled" in failed(audited(attention_pair, SHORT))


def test_rows_that_are_one_off_are_caught(attention_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    law = Scores._law

    def one_off(self: Scores, position: int) -> object:
        rows, self._rows = self._rows, [self._rows[0], *self._rows]
        try:
            return law(self, position)
        finally:
            self._rows = rows

    monkeypatch.setattr(Scores, "_law", one_off)
    assert failed(audited(attention_pair)) >= {"greedy", "coupled", "caches"}


@pytest.fixture
def leave_behind(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets rollbacks of the caches of a role leave another token in the last place that is kept."""
    rewind = Context.rewind

    def spoil(role: str) -> None:
        def leaving(self: Context, length: int) -> None:
            if self._weights.role != role or not 0 < length < self.length <= length + 4:
                rewind(self, length)
                return
            last = self.tokens[length - 1]
            rewind(self, length - 1)
            self.extend([(last + 1) % 256], rows=0)
            self.tokens[-1] = last

        monkeypatch.setattr(Context, "rewind", leaving)

    return spoil


def test_a_rollback_that_leaves_another_token_is_caught(
    bad_draft_pair: Pair, leave_behind: Callable[[str], None]
) -> None:
    leave_behind("target")
    assert failed(audited(bad_draft_pair)) >= {"greedy", "caches"}


def test_a_draft_that_reads_another_text_is_caught_although_it_only_guesses(
    bad_draft_pair: Pair, leave_behind: Callable[[str], None]
) -> None:
    leave_behind("draft")
    found = audited(bad_draft_pair)
    assert failed(found) == {"caches"}
    words = next(each.words for each in found.outcomes if each.name == "caches")
    assert "logits of the draft" in words
    assert "logits of the target" not in words


def test_passes_over_several_tokens_that_compute_something_else_are_not_taken_for_rounding(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Context._rows

    def rolled(self: Context, first: int, count: int) -> Sequence[Logits]:
        found = rows(self, first, count)
        return found if count == 1 else [np.roll(row, 1) for row in found]

    monkeypatch.setattr(Context, "_rows", rolled)
    found = audited(attention_pair)
    assert failed(found) >= {"greedy", "coupled", "caches"}
    assert "which is no rounding" in found.outcomes[0].words


def test_the_engine_is_whole_again() -> None:
    assert [type(rule) for rule in RULES.values()] == [TokenRule, BlockRule, CoupledRule]
