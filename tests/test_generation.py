"""Where an answer ends, what of it is printed, and what is counted, through the real engine on toy models."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.top_k import Logits
from specdec_cli.generation import Request
from specdec_cli.llama.context import Context
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from tests.engine import GREEDY, UNFILTERED, Answer, Notices, answer
from tests.toy_gguf import EOS, FIRST_EXTRA, TURN_END, attention_toy, memoryless_toy

A, B, C, D, X = b"ABCDx"
COUNTING = {ord(str(digit)): {ord(str((digit + 1) % 10)): 0.0} for digit in range(10)}
"""A model that counts: 0123456789012..."""


def _pair(folder: Path, target: dict[int, dict[int, float]], draft: dict[int, dict[int, float]] | None = None) -> Pair:
    """Toys that follow these tables, and say C where a table says nothing."""
    big = memoryless_toy(target, {C: 0}).write(folder / "target.gguf")
    return Pair(big, big if draft is None else memoryless_toy(draft, {C: 0}).write(folder / "draft.gguf"))


def _request(**wishes: Any) -> Request:
    return Request(chain=GREEDY, seed=1, **{"draft_tokens": 4, **wishes})


def _assert_consistent(given: Answer, tokens: int) -> None:
    counters = given.generation.counters
    assert counters.tokens == tokens
    assert counters.tokens == counters.accepted + counters.corrections + counters.bonus
    assert 0 <= counters.accepted <= counters.examined <= counters.drafted
    assert sum(counters.drafted_at) == counters.drafted
    assert sum(counters.accepted_at) == counters.accepted


@pytest.mark.parametrize("end", [EOS, TURN_END])
@pytest.mark.parametrize("draft_tokens", [0, *range(1, 9)])
def test_an_end_inside_a_block_ends_the_text_right_there(tmp_path: Path, draft_tokens: int, end: int) -> None:
    pair = _pair(tmp_path, {X: {A: 0}, A: {B: 0}, B: {end: 0}, end: {C: 0}})
    given = answer(pair, draft_tokens=draft_tokens, max_tokens=30)
    assert given.text == "AB"
    assert given.generation.finish_reason == "stop"
    _assert_consistent(given, 2)


@pytest.mark.parametrize("draft_tokens", range(1, 9))
def test_an_end_that_only_the_draft_wants_does_not_end_the_text(tmp_path: Path, draft_tokens: int) -> None:
    target = {X: {A: 0.0}, A: {B: 0.0}, B: {C: 0.0}, C: {D: 0.0}, D: {A: 0.0}}
    pair = _pair(tmp_path, target, {**target, B: {EOS: 0}})
    given = answer(pair, draft_tokens=draft_tokens, max_tokens=10)
    assert given.text == "ABCDABCDAB"
    assert given.generation.finish_reason == "length"
    _assert_consistent(given, 10)


def test_an_answer_may_end_before_it_begins(tmp_path: Path) -> None:
    given = answer(_pair(tmp_path, {X: {EOS: 0}}), max_tokens=5)
    assert given.text == ""
    assert given.generation.finish_reason == "stop"
    assert given.generation.timing.rate(0) is None
    _assert_consistent(given, 0)


@pytest.mark.parametrize("max_tokens", range(1, 11))
@pytest.mark.parametrize("draft_tokens", [0, 1, 3, 8])
def test_the_budget_is_used_up_exactly(tmp_path: Path, max_tokens: int, draft_tokens: int) -> None:
    given = answer(_pair(tmp_path, COUNTING), "0", max_tokens=max_tokens, draft_tokens=draft_tokens)
    assert given.text == "1234567890"[:max_tokens]
    assert given.generation.finish_reason == "length"
    _assert_consistent(given, max_tokens)
    assert given.generation.counters.rounds == -(-max_tokens // (draft_tokens + 1))
    assert given.generation.counters.drafted == max_tokens - given.generation.counters.rounds


@pytest.mark.parametrize("end_at", [9, 10])
def test_a_stop_at_the_last_token_of_the_budget_is_a_stop(tmp_path: Path, end_at: int) -> None:
    chain = {X + index: {X + index + 1: 0.0} for index in range(end_at)}
    pair = _pair(tmp_path, {**chain, X + end_at: {EOS: 0}})
    given = answer(pair, max_tokens=10, draft_tokens=4)
    assert given.generation.finish_reason == ("stop" if end_at < 10 else "length")
    _assert_consistent(given, end_at)


@pytest.mark.parametrize("draft_tokens", [0, 1, 4, 8])
@pytest.mark.parametrize(
    ("stops", "text", "reason", "tokens"),
    [
        (("56",), "1234", "stop", 6),
        (("9012", "01"), "123456789", "stop", 11),
        (("01", "9012"), "123456789", "stop", 11),
        (("1",), "", "stop", 1),
        (("56x",), "12345678901234567890", "length", 20),
        (("90x",), "12345678901234567890", "length", 20),
        (("1234567890123456789012345",), "12345678901234567890", "length", 20),
        (("8", "78"), "123456", "stop", 8),
    ],
)
def test_a_stop_string_cuts_the_text_and_the_counts(
    tmp_path: Path, stops: tuple[str, ...], text: str, reason: str, tokens: int, draft_tokens: int
) -> None:
    given = answer(_pair(tmp_path, COUNTING), "0", max_tokens=20, draft_tokens=draft_tokens, stops=stops)
    assert given.text == text
    assert given.generation.finish_reason == reason
    _assert_consistent(given, tokens)


def test_text_that_may_become_a_stop_string_waits_until_it_cannot(tmp_path: Path) -> None:
    with Session(_pair(tmp_path, COUNTING), ModelSettings(threads=1), Notices().listener) as session:
        request = _request(max_tokens=8, draft_tokens=0, stops=("345x",))
        steps = list(session.generate(session.prompt_from_text("0"), request))
    assert ["".join(segment.text for segment in step) for step in steps] == ["1", "2", "", "", "", "3456", "7", "8", ""]


def test_an_answer_that_the_engine_breaks_off_gives_out_what_was_held_back(tmp_path: Path) -> None:
    with Session(_pair(tmp_path, COUNTING), ModelSettings(threads=1), Notices().listener) as session:
        generation = session.generate(session.prompt_from_text("0"), _request(draft_tokens=0, stops=("345x",)))
        steps = iter(generation)
        shown = "".join(segment.text for _ in range(4) for segment in next(steps))
        rest = "".join(segment.text for segment in generation.break_off())
        assert (shown, rest, generation.text, generation.finish_reason) == ("12", "34", "1234", "failed")
        assert generation.break_off() == []


def test_an_answer_that_had_stopped_before_the_engine_failed_stays_so(tmp_path: Path) -> None:
    with Session(_pair(tmp_path, COUNTING), ModelSettings(threads=1), Notices().listener) as session:
        generation = session.generate(session.prompt_from_text("0"), _request(draft_tokens=0, stops=("34",)))
        steps = iter(generation)
        shown = "".join(segment.text for _ in range(4) for segment in next(steps))
        assert generation.break_off() == []
        assert (shown, generation.text, generation.finish_reason) == ("12", "12", "stop")


@pytest.mark.parametrize("draft_tokens", [0, 3])
@pytest.mark.parametrize("max_tokens", range(1, 8))
def test_characters_come_whole_and_a_cut_one_becomes_a_replacement(
    tmp_path: Path, max_tokens: int, draft_tokens: int
) -> None:
    euro = {X: {0xE2: 0.0}, 0xE2: {0x82: 0.0}, 0x82: {0xAC: 0.0}, 0xAC: {0xE2: 0.0}}
    with Session(_pair(tmp_path, euro), ModelSettings(threads=1), Notices().listener) as session:
        request = _request(max_tokens=max_tokens, draft_tokens=draft_tokens)
        steps = list(session.generate(session.prompt_from_text("x"), request))
    *before, last = ["".join(segment.text for segment in step) for step in steps]
    assert "".join(before) == "€" * (max_tokens // 3)
    assert last == ("\N{REPLACEMENT CHARACTER}" if max_tokens % 3 else "")


def test_a_byte_that_starts_nothing_becomes_a_replacement(tmp_path: Path) -> None:
    given = answer(_pair(tmp_path, {X: {0xFF: 0}, 0xFF: {A: 0}}), max_tokens=3)
    assert given.text == "\N{REPLACEMENT CHARACTER}AC"


def test_a_stop_string_of_one_character_in_two_tokens_is_found(tmp_path: Path) -> None:
    table = {X: {A: 0.0}, A: {0xC3: 0.0}, 0xC3: {0xA9: 0.0}}
    assert answer(_pair(tmp_path, table), stops=("é",), max_tokens=9).text == "A"


def test_long_vocabulary_entries_are_printed_whole(tmp_path: Path) -> None:
    dashes, section = b"-" * 96 + b"\n", "§ 日本語".encode() * 40
    table = {X: {FIRST_EXTRA: 0.0}, FIRST_EXTRA: {FIRST_EXTRA + 1: 0.0}, FIRST_EXTRA + 1: {EOS: 0.0}}
    path = memoryless_toy(table, {C: 0}, extra=(dashes, section)).write(tmp_path / "model.gguf")
    given = answer(Pair(path, path), max_tokens=9)
    assert given.text.encode() == dashes + section


@pytest.mark.parametrize("draft_tokens", [0, 8])
def test_a_full_context_ends_the_text_with_its_last_token_present(attention_pair: Pair, draft_tokens: int) -> None:
    settings = ModelSettings(threads=1, ctx_size=100)
    given = answer(attention_pair, "0123456789", settings=settings, max_tokens=500, draft_tokens=draft_tokens)
    assert given.generation.finish_reason == "context"
    _assert_consistent(given, 90)


@pytest.mark.parametrize("length", range(250, 256))
def test_a_prompt_that_nearly_fills_the_context_leaves_what_is_left(attention_pair: Pair, length: int) -> None:
    settings = ModelSettings(threads=1, ctx_size=256)
    given = answer(attention_pair, "x" * length, settings=settings, draft_tokens=8)
    assert given.generation.finish_reason == "context"
    _assert_consistent(given, 256 - length)


def test_a_budget_that_ends_with_the_context_is_a_length(attention_pair: Pair) -> None:
    settings = ModelSettings(threads=1, ctx_size=100)
    assert answer(attention_pair, "x" * 90, settings=settings, max_tokens=10).generation.finish_reason == "length"


@pytest.mark.parametrize(
    ("draft_context", "drafted"), [(1, 0), (2, 0), (19, 0), (20, 1), (21, 2), (33, 12), (90, 57), (108, 72), (110, 72)]
)
def test_a_text_that_outgrows_the_draft_goes_on_without_it(
    tmp_path: Path, attention_pair: Pair, draft_context: int, drafted: int
) -> None:
    small = attention_toy(2.0).having({"llama.context_length": draft_context}).write(tmp_path / "small.gguf")
    prompt = "The quick brown fox."
    alone = answer(Pair(attention_pair.target, "none"), prompt, max_tokens=90)
    given = answer(Pair(attention_pair.target, small), prompt, max_tokens=90, draft_tokens=4)
    assert given.text == alone.text
    _assert_consistent(given, 90)
    assert len(given.notices) == (1 if drafted < 72 else 0)
    assert all("going on without it" in notice for notice in given.notices)
    assert given.generation.counters.drafted == drafted


def test_both_models_read_the_prompt_before_the_first_round_and_give_no_logits_for_it(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int, int]] = []
    extend = Context.extend

    def record(context: Context, tokens: Sequence[int], rows: int) -> Sequence[Logits]:
        calls.append((context._weights.role, len(tokens), rows))
        return extend(context, tokens, rows)

    monkeypatch.setattr(Context, "extend", record)
    answer(attention_pair, "0123456789", max_tokens=5, draft_tokens=2)
    assert calls[:2] == [("target", 9, 0), ("draft", 9, 0)]
    assert calls[2:5] == [("draft", 1, 1), ("draft", 1, 1), ("target", 3, 3)]


@pytest.mark.parametrize("chain", [GREEDY, UNFILTERED, SamplingChain()], ids=["greedy", "unfiltered", "default"])
@pytest.mark.parametrize("drafted", [True, False])
def test_a_seed_repeats_a_run_bit_for_bit(attention_pair: Pair, chain: SamplingChain, drafted: bool) -> None:
    pair = attention_pair if drafted else Pair(attention_pair.target, "none")
    first, again = (answer(pair, "seed", chain=chain, seed=5, max_tokens=120) for _ in range(2))
    assert first.text == again.text
    assert first.generation.counters == again.generation.counters
    assert first.generation.request.seed == 5


def test_other_seeds_give_other_texts(attention_pair: Pair) -> None:
    texts = {answer(attention_pair, chain=UNFILTERED, seed=seed, max_tokens=40).text for seed in (0, 1, 2, 2**64 - 1)}
    assert len(texts) == 4


def test_each_turn_of_a_seed_has_noise_of_its_own_and_the_first_that_of_the_seed() -> None:
    requests = [Request(chain=GREEDY, seed=seed, turn=turn) for seed in (0, 1, 2**64 - 1) for turn in range(4)]
    assert len({request.noise_seed for request in requests}) == len(requests)
    assert all(0 <= request.noise_seed < 2**64 for request in requests)
    assert all(request.noise_seed == request.seed for request in requests if request.turn == 0)
    assert requests[1].noise_seed == 0xD84930CC68597232  # a conversation that was saved goes on with the same noise


def test_the_text_that_was_yielded_is_kept(attention_pair: Pair) -> None:
    with Session(attention_pair, ModelSettings(threads=1), Notices().listener) as session:
        generation = session.generate(session.prompt_from_text("x"), _request(max_tokens=20))
        parts = ""
        for segments in generation:
            parts += "".join(segment.text for segment in segments)
            assert generation.text == parts
    assert len(parts) >= 1


def test_times_are_shared_out_and_add_up(attention_pair: Pair) -> None:
    given = answer(attention_pair, max_tokens=50)
    seconds = given.generation.timing
    assert min(seconds.prompt, seconds.draft, seconds.verify, seconds.sample) > 0
    assert seconds.generation == seconds.draft + seconds.verify + seconds.sample
    assert seconds.rate(50) == pytest.approx(50 / seconds.generation)


def test_ctrl_c_between_two_rounds_keeps_the_text_so_far(attention_pair: Pair) -> None:
    with Session(attention_pair, ModelSettings(threads=1), Notices().listener) as session:
        generation = session.generate(session.prompt_from_text("x"), _request(max_tokens=200))
        steps = iter(generation)
        for _ in range(5):
            next(steps)
        signal.raise_signal(signal.SIGINT)
        rest = list(steps)
    assert len(rest) == 1
    assert generation.finish_reason == "interrupted"
    assert generation.counters.rounds == 5
    assert generation.counters.tokens == 25
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_while_the_prompt_is_read_says_so(attention_pair: Pair) -> None:
    with Session(attention_pair, ModelSettings(threads=1), Notices().listener) as session:
        generation = session.generate(session.prompt_from_text("x" * 100), _request(max_tokens=200))
        session.interrupt.flag[0] = b"\x01"
        assert [segment for segments in generation for segment in segments] == []
    assert generation.finish_reason == "interrupted"
    assert generation.counters.tokens == 0


def test_the_next_answer_knows_nothing_of_a_ctrl_c_in_the_one_before(attention_pair: Pair) -> None:
    with Session(attention_pair, ModelSettings(threads=1), Notices().listener) as session:
        prompt = session.prompt_from_text("x")
        stopped = session.generate(prompt, _request(max_tokens=20))
        for count, _ in enumerate(stopped):
            if count == 1:
                signal.raise_signal(signal.SIGINT)
        after = session.generate(prompt, _request(max_tokens=20))
        whole = "".join(segment.text for segments in after for segment in segments)
    assert stopped.finish_reason == "interrupted"
    assert (after.finish_reason, after.counters.tokens) == ("length", 20)
    assert whole == answer(attention_pair, max_tokens=20).text
