"""The engine for programs, on toys: what it yields is what the commands have, and its laws are those of the models."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specdec_cli
from specdec_cli import OpenPair, open_pair
from specdec_cli.catalog import Pair
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.step import Step
from specdec_cli.core.verify import Kind, Proposal
from specdec_cli.errors import ModelError, UsageError
from specdec_cli.library import laws
from specdec_cli.library.wishes import Loading, Sampling
from specdec_cli.placing_keys import PLACING_KEYS
from specdec_cli.settings import ModelSettings
from tests.engine import UNFILTERED, answer
from tests.llama.test_adapters import lora
from tests.toy_gguf import BOS, attention_toy
from tests.toy_kinds import KINDS, kind_toy

EXACT: dict[str, Any] = {"threads": 1, "cache_type_k": "f32", "cache_type_v": "f32", "flash_attn": "off"}
PLAIN: dict[str, Any] = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0}
TEXT = "A text that both are asked about, longer than sixteen places."


@pytest.fixture
def pair(attention_pair: Pair) -> Iterator[OpenPair]:
    with open_pair(attention_pair.target, draft=str(attention_pair.draft), **EXACT) as opened:
        yield opened


def test_rounds_are_told_one_by_one_with_all_that_decided_on_them(pair: OpenPair) -> None:
    answer = pair.generate("x", seed=3, draft_tokens=4, max_tokens=40, rule="token", **PLAIN)
    steps = list(answer)
    assert [token for step in steps for token in step.round.tokens] == answer.tokens
    assert "".join(segment.text for step in steps for segment in step.segments) == answer.text
    assert len(answer.tokens) == 40
    assert answer.finish_reason == "length"
    assert answer.counters.rounds == len(steps)
    for step in steps:
        for position, decision in step.decisions.items():
            token = step.proposal.tokens[position]
            p, q = step.targets[position], step.proposal.distributions[position]
            assert decision.probability == pytest.approx(min(1, p.at(token) / q.at(token)))


def test_an_answer_is_that_of_the_commands(pair: OpenPair, attention_pair: Pair) -> None:
    settings = ModelSettings(threads=1, cache_type_k="f32", cache_type_v="f32", flash_attn="off")
    expected = answer(attention_pair, chain=UNFILTERED, seed=9, max_tokens=30, draft_tokens=3, settings=settings)
    ours = pair.generate("x", seed=9, max_tokens=30, draft_tokens=3, **PLAIN).finish()
    assert (ours.text, ours.tokens) == (expected.text, expected.generation.tokens)


def test_a_step_that_is_kept_is_not_changed_by_later_rounds(pair: OpenPair) -> None:
    kept: list[tuple[Step, list[bytes]]] = []
    for step in pair.generate("x", seed=3, draft_tokens=4, max_tokens=40, **PLAIN):
        kept.append((step, [law.weights.tobytes() for law in (*step.targets, *step.proposal.distributions)]))
    for step, weights in kept:
        assert [law.weights.tobytes() for law in (*step.targets, *step.proposal.distributions)] == weights


def test_messages_are_answered_by_the_template_and_text_is_continued(pair: OpenPair) -> None:
    assert pair.to_text(pair.to_tokens([{"role": "user", "content": "hi"}])) == "[user]hi\n[assistant]"
    assert pair.to_tokens("hi") == [104, 105]
    assert pair.to_tokens([104, 105]) == [104, 105]
    assert [type(each) for each in pair.to_tokens(list(np.array([104, 105])))] == [int, int]
    assert pair.to_text([0xE2, 0x82, 0xAC, 0xFF, BOS]) == "€\ufffd"


def test_laws_of_a_text_are_those_that_an_answer_meets(pair: OpenPair) -> None:
    answer = pair.generate("x", seed=5, draft_tokens=3, max_tokens=30, draft_temperature="same", **PLAIN)
    steps = list(answer)
    laws = {at.place: at for at in pair.distributions([120, *answer.tokens], draft_temperature="same", **PLAIN)}
    assert list(laws) == list(range(1, 32))
    for step in steps:
        for offset in range(step.round.accepted):
            position = laws[step.place + offset]
            assert position.token == step.proposal.tokens[offset]
            for ours, theirs in ((position.p, step.targets), (position.q, step.proposal.distributions)):
                assert ours is not None
                assert pair.probabilities(ours) == pytest.approx(pair.probabilities(theirs[offset]), abs=1e-5)
    assert (laws[31].token, laws[31].probability) == (None, None)


def test_a_start_leaves_out_what_is_before_it_and_nothing_else(pair: OpenPair) -> None:
    whole, part = list(pair.distributions(TEXT, **PLAIN)), list(pair.distributions(TEXT, start=20, **PLAIN))
    assert [at.place for at in part] == [at.place for at in whole[19:]]
    for one, other in zip(part, whole[19:], strict=True):
        assert pair.probabilities(one.p) == pytest.approx(pair.probabilities(other.p), abs=1e-5)
        assert one.overlap == pytest.approx(other.overlap, abs=1e-5)


def test_laws_have_the_history_that_penalties_look_at(pair: OpenPair) -> None:
    text = "ab" * 12
    plain = [at.probability for at in pair.distributions(text, **PLAIN)]
    punished = [at.probability for at in pair.distributions(text, presence_penalty=5.0, **PLAIN)]
    assert punished[0] == pytest.approx(plain[0], rel=0.2), "b has not come yet"
    assert all(one is None or one < 0.5 * (other or 0) for one, other in zip(punished[1:], plain[1:], strict=True))


def test_filters_are_part_of_the_laws(pair: OpenPair) -> None:
    (*_, last) = pair.distributions("x", temperature=1, top_k=3, top_p=1, min_p=0)
    assert np.count_nonzero(pair.probabilities(last.p)) == 3
    assert pair.probabilities(last.p).sum() == pytest.approx(1)
    (*_, last) = pair.distributions("x", temperature=0)
    assert pair.probabilities(last.p).max() == 1


@pytest.mark.parametrize("draft", ["none", "lookup"])
def test_without_a_draft_model_there_are_still_the_laws_of_the_target(attention_pair: Pair, draft: str) -> None:
    with open_pair(attention_pair.target, draft=draft, **EXACT) as pair:
        positions = list(pair.distributions("abcabcabcab", **PLAIN))
    assert [position.token for position in positions[:2]] == [98, 99]
    found = {position.drafter for position in positions if position.q is not None}
    assert found == ({"lookup"} if draft == "lookup" else set())
    assert all((position.overlap is None) == (position.q is None) for position in positions)


@pytest.mark.parametrize("kind", KINDS)
def test_models_that_go_back_by_kept_states_have_laws_too(kind: str, tmp_path: Path) -> None:
    target = kind_toy(kind, 3.0).write(tmp_path / "target.gguf")
    draft = kind_toy(kind, 2.0).write(tmp_path / "draft.gguf")
    with open_pair(target, draft=draft, **EXACT) as pair:
        whole = list(pair.distributions(TEXT, **PLAIN))
        (*_, last) = pair.distributions(TEXT, start=len(TEXT), **PLAIN)
    assert all(position.q is not None for position in whole)
    assert whole[-1].p.at(65) == pytest.approx(last.p.at(65), rel=1e-3)


def test_a_loop_may_stop_and_go_on_later(pair: OpenPair) -> None:
    expected = pair.generate("x", seed=1, draft_tokens=2, max_tokens=20, **PLAIN).finish().tokens
    answer = pair.generate("x", seed=1, draft_tokens=2, max_tokens=20, **PLAIN)
    for step in answer:
        assert step.index == 0
        break
    assert answer.finish_reason is None
    assert next(answer).index == 1
    answer.finish()
    assert answer.tokens == expected
    assert answer.finish() is answer, "there is nothing left"


def test_an_answer_that_is_left_gives_ctrl_c_back(pair: OpenPair) -> None:
    before = signal.getsignal(signal.SIGINT)
    answer = pair.generate("x", seed=1, draft_tokens=2, max_tokens=20, **PLAIN)
    said = next(answer).round.tokens
    assert signal.getsignal(signal.SIGINT) != before
    answer.close()
    assert signal.getsignal(signal.SIGINT) == before
    assert answer.tokens == list(said)


def test_ctrl_c_ends_an_answer_and_keeps_what_was_said(pair: OpenPair) -> None:
    answer = pair.generate("x", seed=1, draft_tokens=2, max_tokens=200, **PLAIN)
    for step in answer:
        if step.index == 3:
            signal.raise_signal(signal.SIGINT)
    assert answer.finish_reason == "interrupted"
    assert 4 <= len(answer.tokens) < 200
    assert pair.generate("x", max_tokens=2, draft_tokens=1).finish().finish_reason == "length"


def test_two_pairs_can_answer_in_turns(attention_pair: Pair) -> None:
    before = signal.getsignal(signal.SIGINT)
    with (
        open_pair(attention_pair.target, draft="none", **EXACT) as one,
        open_pair(attention_pair.target, draft="lookup", **EXACT) as other,
    ):
        first = one.generate("x", seed=1, max_tokens=5, rule="coupled")
        second = other.generate("x", seed=1, max_tokens=9, rule="coupled", draft_tokens=1)
        for _ in zip(first, second, strict=False):
            pass
        assert second.finish().tokens[:5] == first.finish().tokens
    assert signal.getsignal(signal.SIGINT) == before


def test_answers_and_readings_do_not_disturb_each_other(pair: OpenPair) -> None:
    expected = pair.generate("x", seed=1, draft_tokens=2, max_tokens=20, **PLAIN).finish().text
    answer = pair.generate("x", seed=1, draft_tokens=2, max_tokens=20, **PLAIN)
    reading = pair.distributions(TEXT, **PLAIN)
    for _ in answer:
        next(reading)
    assert answer.text == expected


def test_a_later_answer_ends_the_one_before(pair: OpenPair) -> None:
    first = pair.generate("x", max_tokens=20, draft_tokens=2)
    next(iter(first))
    pair.generate("y", max_tokens=2, draft_tokens=2).finish()
    with pytest.raises(ModelError, match="cannot go on"):
        first.finish()


def test_a_closed_pair_answers_nothing_and_kills_nothing(attention_pair: Pair) -> None:
    with open_pair(attention_pair.target, draft="none", **EXACT) as pair:
        answer, reading = pair.generate("x", max_tokens=5), pair.distributions(TEXT)
        next(reading)
    assert list(reading) == []
    with pytest.raises(ModelError, match="cannot go on"):
        answer.finish()
    for call in (lambda: pair.generate("x"), lambda: pair.distributions("x"), lambda: pair.to_text([1])):
        with pytest.raises(ModelError, match="this pair is closed"):
            call()
    pair.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 0}, "max_tokens 0 is not a whole number in 1.."),
        ({"draft_tokens": 129}, "draft_tokens 129 is not a whole number in 0..128"),
        ({"draft_tokens": True}, "draft_tokens True is not a whole number"),
        ({"seed": -1}, "seed -1 is not a whole number in 0.."),
        ({"rule": "best"}, "rule best is not one of token, block, coupled"),
        ({"draft_temperature": "warm"}, "draft_temperature warm is neither auto nor same nor a number"),
        ({"draft_temperature": -1}, "draft_temperature -1 is neither"),
        ({"draft_temperature": True}, "draft_temperature True is neither"),
        ({"stop": "x"}, "stop is a list of texts"),
        ({"stop": [""]}, "stop is a list of texts"),
        ({"grammar": " "}, "grammar is empty"),
        ({"temperature": -1}, "--temperature -1 is not in 0..100"),
        ({"heat": 1}, "there is no option heat"),
        ({"samplers": ["magic"]}, 'no sampler is named "magic"'),
        ({"logit_bias": {999999: 1.0}}, "there is no token 999999"),
        ({"logit_bias": {-1: 1.0}}, "logit_bias names the token -1"),
    ],
)
def test_a_wrong_option_is_one_error_of_the_package(pair: OpenPair, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        pair.generate("x", **options)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "prompt", [[-1], [10**6], [1, "x"], [None], [{"role": "user"}], [{"role": "user", "content": "x"}, 3]]
)
def test_what_is_no_prompt_is_refused(pair: OpenPair, prompt: Any) -> None:
    with pytest.raises(UsageError, match="a prompt is a text, or messages, or tokens"):
        pair.generate(prompt)


@pytest.mark.parametrize("start", [0, 4, -1])
def test_a_start_outside_the_text_is_refused(pair: OpenPair, start: int) -> None:
    with pytest.raises(UsageError, match=r"start -?\d is not in 1..3"):
        pair.distributions("abc", start=start)


def test_an_empty_text_has_no_positions(pair: OpenPair) -> None:
    with pytest.raises(UsageError, match="the text is empty"):
        pair.distributions("")


def test_a_ctrl_c_behind_the_last_pass_of_a_reading_is_heard(pair: OpenPair, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(_: object, context: Sequence[int], *__: object) -> Proposal:
        if len(context) == 3:
            signal.raise_signal(signal.SIGINT)
        return Proposal()

    monkeypatch.setattr(laws, "_draft", press)
    with pytest.raises(KeyboardInterrupt):
        list(pair.distributions("abc", **PLAIN))


def test_a_text_that_does_not_fit_the_context_is_refused(attention_pair: Pair) -> None:
    with open_pair(attention_pair.target, draft="none", ctx_size=8, **EXACT) as pair:
        assert len(list(pair.distributions("12345678"))) == 8
        with pytest.raises(UsageError, match="the text has 9 tokens and the context holds 8"):
            pair.distributions("123456789")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads 0 is not a whole number in 1..512"),
        ({"ctx_size": -1}, "ctx_size -1"),
        ({"cache_type_k": "q9"}, "cache_type_k q9 is not one of f32"),
        ({"flash_attn": "maybe"}, "flash_attn maybe is not one of auto"),
        ({"gpu_layers": -2}, 'gpu_layers -2 must be "auto" or a whole number from -1'),
        ({"lora": "adapter.gguf"}, "lora is no list of files with scales"),
        ({"draft_lora": [("adapter.gguf", 101)]}, "draft_lora adapter.gguf with scale 101 is not in -100..100"),
        ({"speed": 3}, "there is no option speed"),
    ],
)
def test_a_wrong_setting_is_found_before_anything_loads(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_pair("/no/such/model.gguf", **options)
    assert message in caught.value.message


def test_a_pair_is_found_by_its_name_and_a_file_by_its_look(tmp_path: Path) -> None:
    attention_toy(3.0).write(tmp_path / "target.gguf")
    config = tmp_path / "models.toml"
    config.write_text('default = "toy"\n[pairs.toy]\ntarget = "target.gguf"\ndraft = "lookup"\n')
    for target, path in ((None, config), ("toy", str(config))):
        with open_pair(target, config=path, threads=1) as pair:
            assert (pair.pair.name, pair.pair.draft) == ("toy", "lookup")
    with open_pair(str(tmp_path / "target.gguf"), threads=1) as pair:
        assert (pair.pair.name, pair.pair.draft) == (None, "lookup")
    with pytest.raises(UsageError, match='no pair named "target"'):
        open_pair("target", config=config)
    with pytest.raises(UsageError, match="config is about pairs"):
        open_pair(tmp_path / "target.gguf", config=config)
    with pytest.raises(ModelError, match="target none"):
        open_pair("none.gguf")


def test_what_a_user_would_read_as_a_note_is_logged(attention_pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "specdec_cli"),
        open_pair(attention_pair.target, draft="none", ctx_size=5000, threads=1) as pair,
    ):
        pair.generate("x", max_tokens=1).finish()
    assert "5000 is more than the 2048 tokens" in caplog.text


def test_progress_is_told_while_it_loads(attention_pair: Pair) -> None:
    told: list[tuple[str, float | None]] = []
    with open_pair(attention_pair.target, draft="none", threads=1, progress=lambda *each: told.append(each)):
        pass
    assert ("loading the target", 1.0) in told


def test_the_options_are_those_of_the_engine() -> None:
    chain = {each.name for each in fields(SamplingChain) if each.init} - {"dry_breakers"} | {"dry_sequence_breaker"}
    assert set(Sampling.__annotations__) == chain
    assert set(Loading.__annotations__) == {each.name for each in fields(ModelSettings)} - {"placing"} | {*PLACING_KEYS}


def test_the_kinds_of_tokens_are_told(pair: OpenPair) -> None:
    steps = list(pair.generate("x", seed=3, draft_tokens=2, max_tokens=20, **PLAIN))
    assert {kind for step in steps for kind in step.round.kinds} == set(Kind)


def test_a_grammar_and_a_bias_shape_the_answer(pair: OpenPair) -> None:
    text = pair.generate("x", grammar='root ::= "ab" [0-9]+', max_tokens=8, draft_tokens=2, seed=1).finish().text
    assert text.startswith("ab")
    biased = pair.generate("x", logit_bias={"q": 100.0}, samplers=["temperature"], max_tokens=3, draft_tokens=1, seed=1)
    assert biased.finish().text == "qqq"


@pytest.mark.parametrize(("token", "text"), [("7", "77"), (ord("a"), "aa")])
def test_a_bias_is_by_text_or_by_id_and_digits_are_a_text(pair: OpenPair, token: int | str, text: str) -> None:
    answer = pair.generate("x", logit_bias={token: 100.0}, samplers=["temperature"], max_tokens=2, draft_tokens=1)
    assert answer.finish().text == text


def test_an_adapter_is_given_with_its_scale(attention_pair: Pair, tmp_path: Path) -> None:
    adapter, shares = lora(tmp_path / "adapter.gguf"), []
    for adapters in ([], [(str(adapter), 1.0)]):
        with open_pair(attention_pair.target, draft="none", lora=adapters, **EXACT) as pair:
            (*_, last) = pair.distributions("abc", **PLAIN)
            shares.append(last.p.at(65))
    assert shares[0] != pytest.approx(shares[1], rel=1e-3)


def test_names_of_the_package_are_loaded_when_they_are_asked_for() -> None:
    script = (
        "import sys, specdec_cli\n"
        "assert not {'numpy', 'llama_cpp', 'specdec_cli.session'} & set(sys.modules)\n"
        "from specdec_cli import open_pair\n"
        "assert open_pair.__module__ == 'specdec_cli.library.opening'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(hasattr(specdec_cli, name) for name in specdec_cli.__all__)
    with pytest.raises(AttributeError, match="no attribute 'close_pair'"):
        _ = specdec_cli.close_pair  # type: ignore[attr-defined]
