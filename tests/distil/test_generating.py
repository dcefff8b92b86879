"""Asking many prompts at once: each answer is the one that plain decoding gives, with all that was likely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.distil.answers import Answer
from specdec_cli.distil.generating import LIKELY, Asking, answer
from specdec_cli.errors import UsageError
from specdec_cli.generation import Request
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from tests.engine import Notices
from tests.toy_gguf import EOS, attention_toy, memoryless_toy

PROMPTS = ["x", "a longer question", "why?"]
LONGEST = 12
REQUEST = Request(SamplingChain(), seed=5, max_tokens=LONGEST)
EXACT = ModelSettings(threads=1, flash_attn="off", cache_type_k="f32", cache_type_v="f32")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A target that remembers its context, in F32 throughout."""
    path = attention_toy(3.0).write(tmp_path_factory.mktemp("toys") / "target.gguf")
    with Session(Pair(path, ()), EXACT, Notices().listener) as opened:
        yield opened


def asked(session: Session, *, repeat: int = 1, sequences: int = 2, answered: set[int] | None = None) -> list[Answer]:
    return [*answer(Asking(PROMPTS, REQUEST, LONGEST, repeat, sequences), session, answered or set())]


@pytest.mark.parametrize("sequences", [1, 2, 5])
def test_answers_are_those_of_plain_decoding_however_many_are_made_at_once(session: Session, sequences: int) -> None:
    found = {each.number: each for each in asked(session, repeat=2, sequences=sequences)}
    assert sorted(found) == [*range(6)]
    for number, each in found.items():
        prompt = session.prompt_from_messages([{"role": "user", "content": PROMPTS[number % 3]}])
        plain = session.generate(prompt, replace(REQUEST, turn=number, draft_tokens=0))
        assert [*each.tokens[: each.start]] == prompt
        for _ in plain:
            pass
        said = [*each.tokens[each.start :]]
        assert said[: len(plain.tokens)] == plain.tokens
        assert len(said) == len(plain.tokens) + (plain.finish_reason == "stop")


def test_answers_that_are_there_are_not_asked_for_again(session: Session) -> None:
    assert sorted(each.number for each in asked(session, repeat=2, answered={0, 4})) == [1, 2, 3, 5]


def test_what_was_likely_are_the_best_tokens_with_their_probabilities(session: Session) -> None:
    found = asked(session)[0]
    prompt = [int(each) for each in found.tokens[: found.start]]
    plain = session.generate(prompt, replace(REQUEST, turn=found.number, draft_tokens=0, logprobs=LIKELY))
    for _ in plain:
        pass
    for place, known in enumerate(plain.logprobs):
        assert [*found.likely[place]] == [each.token for each in known.best]
        np.testing.assert_allclose(found.logprobs[place], [each.raw for each in known.best], rtol=2e-3, atol=2e-3)


def test_ctrl_c_ends_it_and_the_session_goes_on(session: Session) -> None:
    answers = answer(Asking(PROMPTS, REQUEST, LONGEST, 9, 2), session, set())
    next(answers)
    session.interrupt.flag[0] = b"\x01"
    with pytest.raises(KeyboardInterrupt):
        list(answers)
    assert not session.interrupt.raised
    assert len(asked(session)) == len(PROMPTS)


def test_an_answer_may_be_a_single_token(session: Session) -> None:
    request = replace(REQUEST, max_tokens=1)
    found = [*answer(Asking(PROMPTS, request, 1, 2, 2), session, set())]
    assert [each.length for each in found] == [1] * 6


def test_an_answer_may_end_with_its_first_token(tmp_path: Path) -> None:
    path = memoryless_toy({}, {EOS: 1.0}).write(tmp_path / "silent.gguf")
    with Session(Pair(path, ()), EXACT, Notices().listener) as silent:
        found = [*answer(Asking(PROMPTS, REQUEST, LONGEST, 2, 2), silent, set())]
    assert [[*each.tokens[each.start :]] for each in found] == [[EOS]] * 6


def test_answers_that_do_not_fit_the_context_are_refused(session: Session) -> None:
    limit = session.context_limit
    with pytest.raises(UsageError, match=f"and the context holds {limit}"):
        next(answer(Asking(PROMPTS, REQUEST, limit, 1, 2), session, set()))
