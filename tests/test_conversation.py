"""Conversations through the real engine on toy models: what is kept, what is evaluated, what is said."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.conversation import Conversation
from specdec_cli.errors import ModelError, UsageError
from specdec_cli.generation import Generation, Grammar
from specdec_cli.llama.chat_template import Message
from specdec_cli.llama.context import Context
from specdec_cli.question import Wishes, to_request
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from tests.engine import Notices
from tests.toy_gguf import EOS, TEMPLATE, TURN_END, attention_toy, memoryless_toy
from tests.toy_kinds import KINDS, kind_toy

EXACT = ModelSettings(threads=1, cache_type_k="f32", cache_type_v="f32", flash_attn="off")
"""With these, rows of F32 toys are the same to 1e-5 in whatever batches they are evaluated."""
WORDS = Grammar("root ::= [a-z ]+", "words")
"""Text that is tokenised again as it was said."""
UNFILTERED = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
QUESTIONS = ("first", "second", "third")


def _wishes(**said: Any) -> Wishes:
    wishes = Wishes(
        chain={"temperature": 0.0},
        rule="block",
        seed=1,
        draft_tokens=4,
        draft_temperature="auto",
        max_tokens=20,
        stops=(),
        grammar=None,
        json_schema=None,
        logprobs=None,
    )
    return replace(wishes, **said)


@contextmanager
def _talking(
    pair: Pair,
    *,
    settings: ModelSettings = EXACT,
    system: str | None = None,
    grammar: Grammar | None = None,
    **said: Any,
) -> Iterator[tuple[Conversation, Session, Notices]]:
    heard = Notices()
    with Session(pair, settings, heard.listener) as session:
        notice = heard.notices.append
        yield Conversation(session, _wishes(**said), grammar, system=system, notice=notice), session, heard


def _text(generation: Generation) -> str:
    return "".join(segment.text for segments in generation for segment in segments)


def _say(conversation: Conversation, text: str) -> str:
    generation = conversation.ask(text)
    said = _text(generation)
    conversation.keep(generation)
    return said


def _afresh(pair: Pair, messages: list[Message], turn: int, **said: Any) -> str:
    """What a session that knows nothing of earlier turns answers."""
    with Session(pair, EXACT, Notices().listener) as session:
        request = to_request(_wishes(**said), session, None, turn=turn)
        return _text(session.generate(session.prompt_from_messages(messages), request))


def _contexts(session: Session) -> list[Context]:
    return list(session._caches._contexts.values())


def _talker(folder: Path, says: bytes) -> Pair:
    """A model that says `says`, of different characters, after every question."""
    table = {before: {after: 0.0} for before, after in zip((ord("]"), *says), (*says, EOS), strict=False)}
    return Pair(memoryless_toy(table, {EOS: 0}).write(folder / "model.gguf"), "none")


def test_questions_and_answers_take_turns_after_the_system_text(tmp_path: Path) -> None:
    with _talking(_talker(tmp_path, b"Yes"), system="Be brief.") as (conversation, _, heard):
        assert conversation.messages == [{"role": "system", "content": "Be brief."}]
        for question in ("One?", "Two?"):
            assert _say(conversation, question) == "Yes"
        assert conversation.messages == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "Yes"},
            {"role": "user", "content": "Two?"},
            {"role": "assistant", "content": "Yes"},
        ]
        assert (conversation.turn, heard.notices) == (2, [])


def test_a_copy_of_the_messages_changes_nothing(tmp_path: Path) -> None:
    with _talking(_talker(tmp_path, b"Yes")) as (conversation, _, _):
        _say(conversation, "One?")
        copy = conversation.messages
        copy[0]["content"] = "Other"
        copy.clear()
        assert [each["content"] for each in conversation.messages] == ["One?", "Yes"]


@pytest.mark.parametrize("draft", ["fitting", "none"])
def test_a_turn_evaluates_only_what_is_new(attention_pair: Pair, draft: str) -> None:
    pair = attention_pair if draft == "fitting" else Pair(attention_pair.target, "none")
    with _talking(pair, grammar=WORDS) as (conversation, session, _):
        for question in QUESTIONS:
            assert len(_say(conversation, question)) == 20
            texts = [len(session.prompt_from_messages(conversation.messages))]
            for context in _contexts(session):
                assert context.evaluated == context.length  # nothing twice
                assert texts[0] - 20 < context.length < texts[0]


def test_another_answer_to_the_same_question_reads_the_prompt_no_more(attention_pair: Pair) -> None:
    with _talking(attention_pair, grammar=WORDS, max_tokens=1) as (conversation, session, _):
        _say(conversation, "a question of many words")
        before = [context.evaluated for context in _contexts(session)]
        conversation.keep(again := conversation.again())
        list(again)
        assert [context.evaluated - count for context, count in zip(_contexts(session), before, strict=True)] == [1, 0]


@pytest.mark.parametrize("chain", [{"temperature": 0.0}, UNFILTERED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", ["attention", "bad draft", "plain", "lookup"])
def test_answers_are_those_of_a_session_that_begins_afresh(
    attention_pair: Pair, bad_draft_pair: Pair, kind: str, chain: dict[str, Any]
) -> None:
    others = {"attention": attention_pair, "bad draft": bad_draft_pair}
    pair = others.get(kind) or Pair(attention_pair.target, "none" if kind == "plain" else "lookup")
    with _talking(pair, system="Be brief.", chain=chain) as (conversation, _, _):
        for turn, question in enumerate(QUESTIONS):
            messages: list[Message] = [*conversation.messages, {"role": "user", "content": question}]
            assert _say(conversation, question) == _afresh(pair, messages, turn, chain=chain)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("role", ["target", "draft", "plain"])
def test_models_that_go_back_by_kept_states_say_what_they_would_afresh(
    tmp_path: Path, attention_pair: Pair, kind: str, role: str
) -> None:
    path = kind_toy(kind, 3.0).write(tmp_path / "model.gguf")
    pair = Pair(attention_pair.target, path) if role == "draft" else Pair(path, "none")
    if role == "target":
        pair = Pair(path, attention_pair.target)
    with _talking(pair, max_tokens=12) as (conversation, _, _):
        for turn, question in enumerate(QUESTIONS):
            if turn == 2:
                conversation.undo()
                conversation.set_system("Other.")
            messages: list[Message] = [*conversation.messages, {"role": "user", "content": question}]
            assert _say(conversation, question) == _afresh(pair, messages, turn, max_tokens=12)


def test_a_cached_beginning_costs_a_recurrent_model_nothing(tmp_path: Path) -> None:
    pair = Pair(kind_toy("mamba", 3.0).write(tmp_path / "model.gguf"), "none")
    with _talking(pair, grammar=WORDS) as (conversation, session, _):
        for question in QUESTIONS:
            _say(conversation, question)
        (context,) = _contexts(session)
        assert context.evaluated == context.length


def test_a_draft_and_none_in_turns_say_the_same(attention_pair: Pair) -> None:
    with _talking(attention_pair) as (conversation, _, _):
        switched = []
        for draft_tokens, question in zip((4, 0, 2, 0, 6), "abcde", strict=True):
            conversation.wishes = _wishes(draft_tokens=draft_tokens)
            switched.append(_say(conversation, question))
    with _talking(Pair(attention_pair.target, "none")) as (conversation, _, _):
        assert [_say(conversation, question) for question in "abcde"] == switched


def test_each_turn_has_noise_of_its_own_and_the_first_that_of_a_single_answer(attention_pair: Pair) -> None:
    said: dict[str, Any] = {"chain": UNFILTERED, "max_tokens": 40}
    with _talking(attention_pair, **said) as (conversation, session, _):
        first = _say(conversation, "same")
        texts = [first]
        for _ in range(3):
            generation = conversation.again()
            texts.append(_text(generation))
            conversation.keep(generation)
        single = session.generate(
            session.prompt_from_messages([{"role": "user", "content": "same"}]),
            to_request(conversation.wishes, session, None),
        )
        assert _text(single) == first
        assert conversation.turn == 4
    assert len(set(texts)) == 4


def test_a_restored_conversation_goes_on_as_it_would_have(attention_pair: Pair) -> None:
    with _talking(attention_pair, system="S", chain=UNFILTERED) as (conversation, _, _):
        _say(conversation, "one")
        _text(conversation.again())  # not kept, but its noise is used up
        messages, turn = conversation.messages, conversation.turn
        expected = _say(conversation, "two")
    with _talking(attention_pair, chain=UNFILTERED) as (conversation, _, _):
        conversation.restore(messages, turn)
        assert conversation.messages == messages
        assert _say(conversation, "two") == expected


@pytest.mark.parametrize("roles", ["a", "u", "uu", "uau", "sua?", "usa", "ss"])
def test_messages_that_do_not_take_turns_are_refused_and_change_nothing(tmp_path: Path, roles: str) -> None:
    names = {"u": "user", "a": "assistant", "s": "system", "?": "tool"}
    with _talking(_talker(tmp_path, b"Yes")) as (conversation, _, _):
        _say(conversation, "One?")
        before = conversation.messages
        with pytest.raises(UsageError, match="do not take turns"):
            conversation.restore([{"role": names[role], "content": "x"} for role in roles], 7)
        assert (conversation.messages, conversation.turn) == (before, 1)


def test_the_coupled_rule_says_the_same_with_any_draft_in_every_turn(
    attention_pair: Pair, bad_draft_pair: Pair
) -> None:
    texts = set()
    for pair in (attention_pair, bad_draft_pair, Pair(attention_pair.target, "none")):
        with _talking(pair, rule="coupled", chain=UNFILTERED) as (conversation, _, _):
            texts.add(tuple(_say(conversation, question) for question in QUESTIONS))
    assert len(texts) == 1


def test_an_interrupted_answer_is_kept_as_far_as_it_was_said(attention_pair: Pair) -> None:
    with _talking(attention_pair, grammar=WORDS, max_tokens=200) as (conversation, _, _):
        generation = conversation.ask("long")
        for count, _ in enumerate(generation):
            if count == 2:
                signal.raise_signal(signal.SIGINT)
        conversation.keep(generation)
        assert generation.finish_reason == "interrupted"
        assert conversation.messages[-1]["content"] == generation.text
        assert len(generation.text) == 15
        conversation.wishes = _wishes()
        conversation.grammar = None
        messages: list[Message] = [*conversation.messages, {"role": "user", "content": "next"}]
        assert _say(conversation, "next") == _afresh(attention_pair, messages, 1)


def test_a_ctrl_c_that_comes_after_the_last_token_is_not_the_next_answers(tmp_path: Path) -> None:
    with _talking(_talker(tmp_path, b"Yes")) as (conversation, _, _):
        for text in ("One?", "Two?"):
            generation = conversation.ask(text)
            steps = iter(generation)
            while generation.finish_reason is None:
                next(steps)
            signal.raise_signal(signal.SIGINT)
            assert list(steps) == [[]]
            conversation.keep(generation)
            assert generation.finish_reason == "stop"
        assert _say(conversation, "Three?") == "Yes"


def test_a_question_without_any_answer_is_dropped_and_an_earlier_answer_stays(tmp_path: Path) -> None:
    with _talking(_talker(tmp_path, b"Yes")) as (conversation, session, _):
        for question in ("One?", "Two?"):
            generation = conversation.ask(question)
            session.interrupt.flag[0] = b"\x01"
            assert _text(generation) == ""
            conversation.keep(generation)
            assert conversation.messages == []
        _say(conversation, "Three?")
        kept = conversation.messages
        generation = conversation.again()
        session.interrupt.flag[0] = b"\x01"
        assert _text(generation) == ""
        conversation.keep(generation)
        assert conversation.messages == kept


def test_another_answer_takes_the_place_of_the_last_one(attention_pair: Pair) -> None:
    with _talking(attention_pair, chain=UNFILTERED) as (conversation, _, _):
        _say(conversation, "one")
        old = _say(conversation, "two")
        generation = conversation.again()
        new = _text(generation)
        assert conversation.messages[-1]["content"] == old
        conversation.keep(generation)
        conversation.keep(generation)
        assert [each["content"] for each in conversation.messages[-2:]] == ["two", new]
        assert len(conversation.messages) == 4
        assert new != old


def test_only_the_latest_answer_can_be_kept(tmp_path: Path) -> None:
    with _talking(_talker(tmp_path, b"Yes")) as (conversation, _, _):
        generation = conversation.ask("One?")
        _text(generation)
        conversation.reset()
        conversation.keep(generation)
        assert conversation.messages == []


@pytest.mark.parametrize("change", ["restore", "undo", "set_system"])
def test_an_answer_to_what_was_changed_meanwhile_is_not_kept(tmp_path: Path, change: str) -> None:
    with _talking(_talker(tmp_path, b"Yes")) as (conversation, _, _):
        _say(conversation, "One?")
        generation = conversation.ask("Two?")
        _text(generation)
        changes: dict[str, Callable[[], object]] = {
            "restore": lambda: conversation.restore([], 0),
            "undo": conversation.undo,
            "set_system": lambda: conversation.set_system("S"),
        }
        changes[change]()
        before = conversation.messages
        conversation.keep(generation)
        assert conversation.messages == before


def test_another_answer_takes_the_place_of_the_last_one_where_the_oldest_turn_had_to_go(attention_pair: Pair) -> None:
    said = [("user", "a" * 110), ("assistant", "b" * 110), ("user", "last"), ("assistant", "old")]
    with _talking(attention_pair, settings=replace(EXACT, ctx_size=256)) as (conversation, _, heard):
        conversation.restore([{"role": role, "content": content} for role, content in said], 2)
        generation = conversation.again()
        new = _text(generation)
        conversation.keep(generation)
        assert heard.notices == ["the context is full: the oldest turn is forgotten"]
        assert conversation.messages == [{"role": "user", "content": "last"}, {"role": "assistant", "content": new}]


def test_undoing_gives_the_question_back_until_there_is_none(tmp_path: Path) -> None:
    with _talking(_talker(tmp_path, b"Yes"), system="S") as (conversation, _, _):
        for question in ("One?", "Two?"):
            _say(conversation, question)
        assert [conversation.undo() for _ in range(3)] == ["Two?", "One?", None]
        assert conversation.messages == [{"role": "system", "content": "S"}]
        with pytest.raises(UsageError, match="nothing has been asked"):
            conversation.again()


def test_a_reset_keeps_the_system_text_and_another_one_takes_its_place(tmp_path: Path) -> None:
    with _talking(_talker(tmp_path, b"Yes"), system="S") as (conversation, _, _):
        _say(conversation, "One?")
        conversation.reset()
        assert conversation.messages == [{"role": "system", "content": "S"}]
        conversation.set_system("T")
        assert conversation.messages == [{"role": "system", "content": "T"}]
        conversation.set_system(None)
        assert conversation.messages == []


def test_a_full_context_forgets_the_oldest_turns_with_one_notice_each_time(attention_pair: Pair) -> None:
    settings = replace(EXACT, ctx_size=256)
    with _talking(attention_pair, settings=settings, grammar=WORDS, system="Stay.") as (conversation, _, heard):
        turns = 0
        for number in range(30):
            notices = len(heard.notices)
            generation = conversation.ask(f"question {number:02}")
            assert len(_text(generation)) == 20
            conversation.keep(generation)
            assert generation.prompt_tokens + 20 <= 256
            now, messages = (len(conversation.messages) - 1) // 2, conversation.messages
            assert messages[0] == {"role": "system", "content": "Stay."}
            assert messages[-2] == {"role": "user", "content": f"question {number:02}"}
            dropped = turns + 1 - now
            assert len(heard.notices) - notices == (1 if dropped else 0)
            went = "the oldest turn is" if dropped == 1 else f"the oldest {dropped} turns are"
            assert not dropped or heard.notices[-1] == f"the context is full: {went} forgotten"
            turns = now
    assert 1 < len(heard.notices) < 20


@pytest.mark.parametrize("max_tokens", [None, 1, 20, 40, 5000])
def test_room_to_answer_is_what_is_asked_for_and_a_quarter_at_most(
    attention_pair: Pair, max_tokens: int | None
) -> None:
    settings, room = replace(EXACT, ctx_size=256), min(max_tokens or 512, 64)
    with _talking(attention_pair, settings=settings, max_tokens=max_tokens) as (conversation, session, heard):
        messages: list[Message] = [{"role": "user", "content": "a" * 30}, {"role": "assistant", "content": "b" * 30}]
        conversation.restore(messages, 1)
        bare = len(session.prompt_from_messages([*messages, {"role": "user", "content": ""}]))
        conversation.ask("c" * (256 - bare - room))
        assert heard.notices == []
        conversation.ask("c" * (256 - bare - room + 1))
        assert heard.notices == ["the context is full: the oldest turn is forgotten"]


def test_turns_that_have_to_go_stay_until_an_answer_without_them_is_kept(attention_pair: Pair) -> None:
    said: list[Message] = [{"role": "user", "content": "a" * 110}, {"role": "assistant", "content": "b" * 110}]
    with _talking(attention_pair, settings=replace(EXACT, ctx_size=256)) as (conversation, session, heard):
        conversation.restore(said, 1)
        generation = conversation.ask("next")
        session.interrupt.flag[0] = b"\x01"
        assert _text(generation) == ""
        conversation.keep(generation)
        assert conversation.messages == said
        text = _say(conversation, "next")
        assert [each["content"] for each in conversation.messages] == ["next", text]
        assert heard.notices == ["the context is full: the oldest turn is forgotten"] * 2


@pytest.mark.parametrize("chain", [{"temperature": 0.0}, UNFILTERED], ids=["greedy", "sampled"])
def test_an_answer_without_a_limit_ends_where_a_session_that_begins_afresh_would_end_it(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch, chain: dict[str, Any]
) -> None:
    monkeypatch.setattr("specdec_cli.context_size.DEFAULT", 256)
    monkeypatch.setattr("specdec_cli.context_size.ROOM_TO_ANSWER", 128)
    said: dict[str, Any] = {"max_tokens": None, "chain": chain}
    with _talking(attention_pair, grammar=WORDS, **said) as (conversation, session, _):
        _text(conversation.ask("x" * 300))
        generation = conversation.ask("short")
        text = _text(generation)
        assert max(context.size for context in _contexts(session)) > 400
        assert (generation.finish_reason, generation.context_size) == ("context", 256)
        assert generation.prompt_tokens + generation.counters.tokens == 256
    with _talking(attention_pair, grammar=WORDS, **said) as (conversation, _, _):
        conversation.turn = 1
        assert _text(conversation.ask("short")) == text


def test_a_long_message_may_take_the_room_of_a_quarter_but_not_all(attention_pair: Pair) -> None:
    settings = replace(EXACT, ctx_size=256)
    with _talking(attention_pair, settings=settings, grammar=WORDS, system="S") as (conversation, session, heard):
        said = _say(conversation, "short")
        before = conversation.messages
        with pytest.raises(UsageError, match=r"the prompt has 3\d\d tokens and the context holds 256, answer included"):
            conversation.ask("x" * 280)
        assert (conversation.messages, conversation.turn, heard.notices) == (before, 1, [])
        empty = session.prompt_from_messages([{"role": "system", "content": "S"}, {"role": "user", "content": ""}])
        generation = conversation.ask("x" * (255 - len(empty)))
        assert len(_text(generation)) == 1
        assert generation.finish_reason == "context"
        conversation.keep(generation)
        assert len(heard.notices) == 1
        conversation.reset()
        conversation.turn = 0
        assert _say(conversation, "short") == said


def test_a_refused_template_leaves_the_conversation_usable(tmp_path: Path) -> None:
    template = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + TEMPLATE
    path = memoryless_toy({ord("]"): {ord("Y"): 0.0}}, {EOS: 0}).having({"tokenizer.chat_template": template})
    with _talking(Pair(path.write(tmp_path / "model.gguf"), "none"), system="S") as (conversation, _, _):
        with pytest.raises(ModelError, match="no system role"):
            conversation.ask("One?")
        assert (conversation.messages, conversation.turn) == ([{"role": "system", "content": "S"}], 0)
        conversation.set_system(None)
        assert _say(conversation, "One?") == "Y"


def test_control_tokens_that_are_typed_or_said_are_plain_text(tmp_path: Path) -> None:
    with _talking(_talker(tmp_path, b"Yes"), system="<|im_end|>") as (conversation, session, _):
        conversation.restore(
            [{"role": "user", "content": "a<|im_end|>b"}, {"role": "assistant", "content": "<|bos|>"}], 1
        )
        tokens = session.prompt_from_messages(conversation.messages)
    assert tokens.count(TURN_END) == 2
    assert b"[user]a<|im_end|>b" in bytes(token for token in tokens if token < 256)


def test_an_earlier_answer_cannot_go_on_and_disturbs_nothing(attention_pair: Pair) -> None:
    with _talking(attention_pair, max_tokens=60) as (conversation, _, _):
        handler = signal.getsignal(signal.SIGINT)
        begun = conversation.ask("first")
        steps = iter(begun)
        for _ in range(3):
            next(steps)
        never_begun = conversation.ask("second")
        assert signal.getsignal(signal.SIGINT) is handler
        generation = conversation.ask("third")
        running = iter(generation)
        parts = [next(running), next(running)]
        for old in (steps, iter(never_begun), iter(begun)):
            with pytest.raises(ModelError, match="cannot go on"):
                next(old)
        del begun, steps, never_begun
        gc.collect()
        parts += running
        said = "".join(segment.text for segments in parts for segment in segments)
    assert said == _afresh(attention_pair, [{"role": "user", "content": "third"}], 2, max_tokens=60)


def test_a_finished_answer_that_is_iterated_again_says_nothing_more(attention_pair: Pair) -> None:
    with _talking(attention_pair) as (conversation, session, _):
        generation = conversation.ask("first")
        _text(generation)
        held = [list(context.tokens) for context in _contexts(session)]
        assert _text(generation) == ""
        assert held == [context.tokens for context in _contexts(session)]


def test_a_growing_conversation_gets_a_context_of_twice_the_size(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specdec_cli.context_size.DEFAULT", 256)
    with _talking(attention_pair, grammar=WORDS, max_tokens=2) as (conversation, session, heard):
        sizes = []
        for length in (10, 150, 100, 10, 500, 1500):
            generation = conversation.ask("x" * length)
            _text(generation)
            conversation.keep(generation)
            sizes.append(_contexts(session)[0].size)
            assert generation.context_size <= sizes[-1]
    assert sizes == [256, 256, 512, 512, 1024, 2048]
    assert heard.notices == ["the context is full: the oldest 4 turns are forgotten"]


def test_a_draft_that_a_conversation_outgrew_is_back_when_the_text_fits_again(
    tmp_path: Path, attention_pair: Pair
) -> None:
    small = attention_toy(2.0).having({"llama.context_length": 128}).write(tmp_path / "small.gguf")
    with _talking(Pair(attention_pair.target, small), grammar=WORDS) as (conversation, _, heard):
        drafted = []
        for question in ("short", "x" * 120, "y" * 120, "short"):
            generation = conversation.ask(question)
            _text(generation)
            drafted.append(generation.counters.drafted > 0)
    assert drafted == [True, False, False, True]
    assert len(heard.notices) == 1
