"""Which pairs load, in which order, and what context an answer gets."""

from __future__ import annotations

import gc
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.errors import ModelError, UsageError
from specdec_cli.generation import Request
from specdec_cli.limits import DraftTokens
from specdec_cli.llama.context import Context
from specdec_cli.llama.devices import devices
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.weights import Weights, load_weights
from specdec_cli.loading import Loaded, load_pair
from specdec_cli.pair_costs import PairCosts
from specdec_cli.session import Session
from specdec_cli.settings import Listener, ModelPlacing, ModelSettings, Placing
from tests.engine import GREEDY, UNFILTERED, Notices, answer
from tests.toy_gguf import BOS, Toy, attention_toy
from tests.toy_kinds import RECURRENT, kind_toy

TARGET, DRAFT = attention_toy(3.0), attention_toy(2.0)


def _open(pair: Pair, memory: Notices | None = None, **settings: Any) -> Session:
    return Session(pair, ModelSettings(**{"threads": 1, **settings}), (memory or Notices()).listener)


def _request(chain: SamplingChain = GREEDY, **wishes: Any) -> Request:
    return Request(chain=chain, seed=1, **wishes)


def test_the_draft_loads_before_the_target(attention_pair: Pair) -> None:
    memory = Notices()
    with _open(attention_pair, memory):
        pass
    assert list(dict.fromkeys(memory.loading)) == ["loading the draft", "loading the target"]
    assert memory.notices == []


def test_a_draft_that_ends_its_turns_with_another_token_fits(tmp_path: Path, attention_pair: Pair) -> None:
    draft = DRAFT.having({"tokenizer.ggml.eos_token_id": 258}).write(tmp_path / "draft.gguf")
    with _open(Pair(attention_pair.target, draft), Notices()) as session:
        assert session.draft is not None


@pytest.mark.parametrize(
    ("draft", "overlap"),
    [
        (DRAFT.spelling(200, "Ω"), "100% of the target's tokens"),
        (DRAFT.having({"tokenizer.ggml.add_bos_token": True}), "100% of the target's tokens"),
    ],
)
def test_a_draft_of_another_vocabulary_guesses_what_both_have_and_that_is_told(
    tmp_path: Path, attention_pair: Pair, draft: Toy, overlap: str
) -> None:
    pair = Pair(attention_pair.target, draft.write(tmp_path / "draft.gguf"))
    given = answer(pair, max_tokens=40)
    assert given.text == answer(Pair(attention_pair.target, "none"), max_tokens=40).text
    assert given.generation.counters.accepted > 0
    assert [overlap in notice for notice in given.notices] == [True]


def test_a_draft_that_shares_next_to_nothing_is_refused_before_anything_loads(
    tmp_path: Path, attention_pair: Pair
) -> None:
    path = replace(DRAFT, tokens=tuple(f"{name}{name}" for name in DRAFT.tokens)).write(tmp_path / "draft.gguf")
    memory = Notices()
    with pytest.raises(ModelError, match=r"they share 0 tokens, 0.0% of the smaller vocabulary"):
        _open(Pair(attention_pair.target, path), memory)
    assert memory.loading == []


@pytest.mark.parametrize("chain", [GREEDY, UNFILTERED], ids=["greedy", "sampled"])
def test_padding_of_the_draft_is_never_drawn_however_likely_it_looks(
    tmp_path: Path, attention_pair: Pair, chain: SamplingChain
) -> None:
    padded = Pair(attention_pair.target, DRAFT.padded(64, pull=50).write(tmp_path / "padded.gguf"))
    plain, given = (answer(pair, "padding", chain=chain, max_tokens=100) for pair in (attention_pair, padded))
    assert given.text == plain.text
    assert given.generation.counters.accepted == plain.generation.counters.accepted


def test_padding_of_the_target_is_no_obstacle(tmp_path: Path, attention_pair: Pair) -> None:
    assert isinstance(attention_pair.draft, Path)
    padded = Pair(TARGET.padded(64).write(tmp_path / "padded.gguf"), attention_pair.draft)
    plain, given = (answer(pair, "padding", max_tokens=100) for pair in (attention_pair, padded))
    assert given.text == plain.text
    assert given.generation.counters.accepted == plain.generation.counters.accepted == 80


@pytest.mark.parametrize("draft", ["draft", "lookup", "none"])
def test_greedy_text_does_not_depend_on_the_draft(attention_pair: Pair, draft: Any) -> None:
    pair = attention_pair if draft == "draft" else Pair(attention_pair.target, draft)
    given = answer(pair, "draft draft draft", max_tokens=150)
    assert given.text == answer(Pair(attention_pair.target, "none"), "draft draft draft", max_tokens=150).text
    assert (given.generation.counters.drafted > 0) == (draft != "none")


@pytest.mark.parametrize(
    ("pair_length", "wanted", "length"),
    [(None, None, "auto"), (6, None, 6), (6, 2, 2), (6, 0, 0), (0, None, 0), (6, "auto", "auto")],
)
def test_the_draft_length_is_asked_for_or_the_pairs_or_auto(
    attention_pair: Pair, pair_length: DraftTokens | None, wanted: DraftTokens | None, length: DraftTokens
) -> None:
    pair = Pair(attention_pair.target, attention_pair.draft, pair_length)
    generation = answer(pair, max_tokens=50, draft_tokens=wanted).generation
    assert generation.draft_tokens == length
    assert len(generation.counters.drafted_at) == length or length == "auto"


@pytest.mark.parametrize(
    ("ctx_size", "prompt", "max_tokens", "size"),
    [
        (None, 10, 20, 2048),
        (None, 10, None, 2048),
        (0, 10, 20, 2048),
        (100, 10, 500, 100),
        (3000, 10, 20, 3000),
    ],
)
def test_the_context_is_what_was_asked_for_or_what_the_model_knows(
    attention_pair: Pair, ctx_size: int | None, prompt: int, max_tokens: int | None, size: int
) -> None:
    memory = Notices()
    with _open(attention_pair, memory, ctx_size=ctx_size) as session:
        generation = session.generate([1] * prompt, _request(max_tokens=max_tokens))
    assert generation.context_size == size
    assert memory.notices == (
        ["--ctx-size 3000 is more than the 2048 tokens the target was trained for"] if size == 3000 else []
    )


def test_a_context_beyond_what_the_target_knows_is_noticed_once(attention_pair: Pair) -> None:
    memory = Notices()
    with _open(attention_pair, memory, ctx_size=3000) as session:
        for draft_tokens in (0, 4, 4):
            session.generate([1], _request(draft_tokens=draft_tokens))
    assert len(memory.notices) == 1


def test_ctrl_c_before_an_answer_begins_is_none_of_the_next(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _open(attention_pair) as session:

        def press(*_: object) -> None:
            session.interrupt.flag[0] = b"\x01"
            session.interrupt.check()

        with monkeypatch.context() as patch:
            patch.setattr(PairCosts, "find", press)
            with pytest.raises(KeyboardInterrupt):
                session.generate([1], _request(draft_tokens="auto"))
        assert len(list(session.generate([1], _request(max_tokens=3, draft_tokens=0)))) == 4


def test_ctrl_c_as_an_answer_is_about_to_begin_is_not_lost(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Session._open

    def press(session: Session, *how: Any) -> Any:
        generation = begin(session, *how)
        session.interrupt.flag[0] = b"\x01"
        return generation

    with _open(Pair(attention_pair.target, "none")) as session:
        with monkeypatch.context() as patch:
            patch.setattr(Session, "_open", press)
            with pytest.raises(KeyboardInterrupt):
                session.generate([1], _request())
        assert len(list(session.generate([1], _request(max_tokens=3)))) == 4


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "size"), [(10, 20, 4096), (10, None, 4096), (3000, None, 5048), (4000, 5000, 9000)]
)
def test_the_context_grows_with_what_prompt_and_answer_need(
    tmp_path: Path, prompt: int, max_tokens: int | None, size: int
) -> None:
    path = TARGET.having({"llama.context_length": 10000}).write(tmp_path / "model.gguf")
    with _open(Pair(path, "none")) as session:
        assert session.generate([1] * prompt, _request(max_tokens=max_tokens)).context_size == size


@pytest.mark.parametrize(("ctx_size", "prompt"), [(1, 1), (1, 5), (256, 256), (256, 257), (None, 2048)])
def test_a_prompt_that_leaves_no_room_is_refused_with_both_numbers(
    attention_pair: Pair, ctx_size: int | None, prompt: int
) -> None:
    with _open(attention_pair, ctx_size=ctx_size) as session, pytest.raises(UsageError) as caught:
        session.generate([1] * prompt, _request())
    size = ctx_size or 2048
    assert caught.value.message == f"the prompt has {prompt} tokens and the context holds {size}, answer included"
    assert "--ctx-size" in caught.value.hint


def test_the_smallest_context_holds_one_token_and_its_answer(attention_pair: Pair) -> None:
    given = answer(attention_pair, "x", settings=ModelSettings(threads=1, ctx_size=2))
    assert given.generation.counters.tokens == 1
    assert given.generation.finish_reason == "context"


def test_an_empty_prompt_needs_a_model_that_begins_texts_itself(tmp_path: Path, attention_pair: Pair) -> None:
    with _open(attention_pair) as session, pytest.raises(UsageError, match="the prompt is empty"):
        session.generate(session.prompt_from_text(""), _request())
    path = TARGET.having({"tokenizer.ggml.add_bos_token": True}).write(tmp_path / "model.gguf")
    with _open(Pair(path, "none")) as session:
        assert session.prompt_from_text("") == [BOS]
        assert len(list(session.generate([BOS], _request(max_tokens=3)))) == 4


def test_messages_become_tokens_by_the_targets_template(attention_pair: Pair) -> None:
    with _open(attention_pair) as session:
        tokens = session.prompt_from_messages([{"role": "user", "content": "Hi"}])
        assert tokens == session.prompt_from_text("[user]Hi<|im_end|>\n[assistant]")


@pytest.mark.parametrize("batch_size", [1, 2, 7])
def test_the_batch_size_changes_nothing_that_is_said(attention_pair: Pair, batch_size: int) -> None:
    expected = answer(attention_pair, "a longer prompt, in batches", max_tokens=60)
    settings = ModelSettings(threads=1, batch_size=batch_size)
    assert answer(attention_pair, "a longer prompt, in batches", settings=settings, max_tokens=60).text == expected.text


def test_a_second_answer_is_as_good_as_the_first(attention_pair: Pair) -> None:
    with _open(attention_pair) as session:
        first, second = (
            "".join(segment.text for segments in generation for segment in segments)
            for generation in (
                session.generate(session.prompt_from_text("twice"), _request(max_tokens=50)) for _ in range(2)
            )
        )
    assert first == second


def test_layers_for_a_missing_gpu_are_one_notice(attention_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specdec_cli.loading.devices", lambda: [each for each in devices() if each.kind == "CPU"])
    memory, layers = Notices(), ModelPlacing(gpu_layers=99)
    with _open(attention_pair, memory, placing=Placing(target=layers, draft=layers)) as session:
        assert session.target.backend == "CPU"
    assert memory.notices == ["no GPU that llama.cpp can use: --gpu-layers has no effect"]


@pytest.mark.parametrize("kind", RECURRENT)
@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_recurrent_model_says_the_same_with_a_draft_and_may_be_one(
    tmp_path: Path, attention_pair: Pair, kind: str, role: str
) -> None:
    path = kind_toy(kind).write(tmp_path / "recurrent.gguf")
    target, draft = (path, attention_pair.target) if role == "target" else (attention_pair.target, path)
    exact = ModelSettings(threads=1, cache_type_k="f32", cache_type_v="f32", flash_attn="off")
    plain = answer(Pair(target, "none"), max_tokens=30, settings=exact)
    given = answer(Pair(target, draft), max_tokens=30, settings=exact)
    assert given.generation.counters.drafted > 0
    assert given.text == plain.text


@pytest.mark.parametrize(("draft_tokens", "states"), [(5, {"target": 1, "draft": 5}), (0, {"target": 0})])
def test_a_recurrent_target_keeps_one_state_and_a_draft_one_for_each_token(
    tmp_path: Path, draft_tokens: int, states: dict[str, int]
) -> None:
    path = kind_toy("mamba").write(tmp_path / "recurrent.gguf")
    with _open(Pair(path, path)) as session:
        session.generate([1], _request(draft_tokens=draft_tokens))
        kept = {role: context.options.snapshots for role, context in session._caches._contexts.items()}
    assert kept == states


def test_each_model_loads_with_what_was_said_of_it(attention_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, tuple[Any, Any]] = {}

    def noted(path: Path, role: str, **how: Any) -> Weights:
        said[role] = how["placement"], how["lora"]
        return load_weights(path, role, **(how | {"lora": ()}))

    monkeypatch.setattr("specdec_cli.loading.load_weights", noted)
    ours, theirs = [(Path("ours"), 1.0)], [(Path("theirs"), 0.5)]
    with _open(attention_pair, lora=ours, draft_lora=theirs) as session:
        plan = session._loaded.plan
        assert said == {"target": (plan.target, ours), "draft": (plan.draft, theirs)}


def test_options_that_span_the_context_span_all_that_was_asked_for(attention_pair: Pair) -> None:
    for ctx_size, window in [(None, 2048), (0, 2048), (100, 2048), (3000, 3000)]:
        with _open(Pair(attention_pair.target, "none"), ctx_size=ctx_size) as session:
            assert session.chain({"repeat_penalty": 1.1, "repeat_last_n": -1}).window == window


def test_whatever_fails_while_loading_everything_loaded_is_freed(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    close = Weights.close

    def record(weights: Weights) -> None:
        closed.append(weights.role)
        close(weights)

    monkeypatch.setattr(Weights, "close", record)
    monkeypatch.setattr("specdec_cli.loading.Tokenizer", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        _open(attention_pair)
    assert closed == ["draft", "target"]


def test_contexts_are_freed_before_ones_of_another_kind_and_before_their_weights(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[str] = []

    def record(kind: type[Context] | type[Weights]) -> None:
        close = kind.close

        def closing(thing: Any) -> None:
            freed.append(kind.__name__)
            close(thing)

        monkeypatch.setattr(kind, "close", closing)

    record(Context)
    record(Weights)
    with _open(attention_pair) as session:
        session.generate([1], _request(draft_tokens=4))
        session.generate([1], _request(draft_tokens=3))
        session.generate([1], _request(draft_tokens=0))
        assert freed == []
        session.generate([1], _request(draft_tokens=5))
        assert freed == ["Context"]
        freed.clear()
    assert freed == ["Context", "Context", "Weights", "Weights"]


def test_ctrl_c_while_loading_is_a_keyboard_interrupt(attention_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Weights] = []

    def pressed(pair: Pair, settings: ModelSettings, interrupt: Interrupt, listener: Listener) -> Loaded:
        interrupt.flag[0] = b"\x01"
        return load_pair(pair, settings, interrupt, listener)

    def noted(*arguments: Any, **more: Any) -> Weights:
        loaded.append(load_weights(*arguments, **more))
        return loaded[-1]

    monkeypatch.setattr("specdec_cli.session.load_pair", pressed)
    monkeypatch.setattr("specdec_cli.loading.load_weights", noted)
    with pytest.raises(KeyboardInterrupt):
        Session(attention_pair, ModelSettings(threads=1), Notices().listener)
    assert loaded == []


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for the memory of this process")
def test_sessions_give_their_memory_back(attention_pair: Pair) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def run() -> None:
        answer(attention_pair, "memory", max_tokens=20)

    for _ in range(3):
        run()
    gc.collect()
    before, threads = resident(), threading.active_count()
    for _ in range(20):
        run()
    gc.collect()
    assert resident() - before < 8_000_000
    assert threading.active_count() <= threads + 1


def test_a_request_says_what_holds_then_the_pair_then_the_default(attention_pair: Pair) -> None:
    own = replace(attention_pair, draft_tokens=3, rule="token", draft_temperature="same")
    with _open(own) as session:
        held = session.complete(_request())
        assert (held.draft_tokens, held.rule, held.draft_temperature) == (3, "token", "same")
        held = session.complete(_request(draft_tokens=0, rule="coupled", draft_temperature="0.5"))
        assert (held.draft_tokens, held.rule, held.draft_temperature) == (0, "coupled", "0.5")
        generation = session.generate(session.prompt_from_text("x"), _request(max_tokens=3))
        assert generation.request == session.complete(_request(max_tokens=3)), "what JSON and traces show"
    with _open(attention_pair) as session:
        held = session.complete(_request())
        assert (held.draft_tokens, held.rule, held.draft_temperature) == ("auto", "block", "auto")
    with _open(replace(attention_pair, draft="none", draft_tokens=3)) as session:
        assert session.complete(_request()).draft_tokens == 0


def test_the_rule_of_a_pair_decides_how_its_drafts_are_verified(attention_pair: Pair) -> None:
    wishes: dict[str, Any] = {"chain": UNFILTERED, "max_tokens": 40, "draft_tokens": 4}
    token = answer(attention_pair, rule="token", **wishes).text
    assert answer(replace(attention_pair, rule="token"), **wishes).text == token
    assert answer(attention_pair, **wishes).text != token


def test_threads_of_a_pair_that_was_tuned_elsewhere_are_left_out_and_that_is_told(attention_pair: Pair) -> None:
    memory = Notices()
    own = replace(attention_pair, name="toys", threads=3, batch_size=64, machine="Other, 99 CPUs")
    with Session(own, ModelSettings(), memory.listener) as session:
        assert (session.settings.threads, session.settings.batch_size) != (3, 64)
    assert [notice.startswith('"toys" was tuned on Other, 99 CPUs') for notice in memory.notices] == [True]
    with Session(replace(own, machine=None), ModelSettings(), memory.listener) as session:
        assert (session.settings.threads, session.settings.draft_threads, session.settings.batch_size) == (3, 3, 64)


def test_threads_may_change_between_answers_and_change_nothing_that_is_said(attention_pair: Pair) -> None:
    with _open(attention_pair) as session:
        prompt, said = session.prompt_from_text("x"), []
        for threads, draft_threads, batch_size in ((1, 1, 64), (2, 1, 8), (1, 1, 64)):
            session.change_threads(threads, draft_threads, batch_size)
            generation = session.generate(prompt, _request(max_tokens=20, draft_tokens=4))
            said.append("".join(segment.text for segments in generation for segment in segments))
    assert said[0] == said[1] == said[2]
