from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.decode import speculate
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Noise
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.errors import ModelError
from specdec_cli.llama.context import ABORTED, Context
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import llama, show_log
from tests.engine import UNFILTERED, decode, opened
from tests.statistical import emitted
from tests.toy_gguf import attention_toy

PROMPTS = [list(b"a"), list(b"The quick brown fox"), list(range(0, 250, 3)), [7] * 40]


@pytest.fixture(scope="module")
def target(attention_pair: Pair) -> Iterator[Context]:
    with opened(attention_pair.target) as context:
        yield context


@pytest.fixture(scope="module")
def twin(attention_pair: Pair) -> Iterator[Context]:
    with opened(attention_pair.target) as context:
        yield context


@pytest.fixture(scope="module")
def draft(attention_pair: Pair) -> Iterator[Context]:
    assert isinstance(attention_pair.draft, Path)
    with opened(attention_pair.draft) as context:
        yield context


@pytest.fixture(scope="module")
def bad_draft(bad_draft_pair: Pair) -> Iterator[Context]:
    assert isinstance(bad_draft_pair.draft, Path)
    with opened(bad_draft_pair.draft) as context:
        yield context


@pytest.mark.parametrize("draft_tokens", range(1, 9))
@pytest.mark.parametrize("prompt", PROMPTS, ids=len)
def test_greedy_text_is_the_same_with_and_without_a_draft(
    target: Context, draft: Context, bad_draft: Context, prompt: list[int], draft_tokens: int
) -> None:
    plain = emitted(decode(target, None, prompt))
    assert len(set(plain)) > 20
    assert emitted(decode(target, draft, prompt, draft_tokens=draft_tokens)) == plain
    assert emitted(decode(target, bad_draft, prompt, draft_tokens=draft_tokens)) == plain


def test_the_toys_that_must_agree_do_and_those_that_must_not_do_not(
    target: Context, draft: Context, bad_draft: Context
) -> None:
    fitting, bad = decode(target, draft, PROMPTS[1]), decode(target, bad_draft, PROMPTS[1])
    assert sum(round_.accepted for round_ in fitting) == sum(round_.drafted for round_ in fitting) == 80
    assert sum(round_.accepted for round_ in bad) < 5


def test_the_toy_remembers_its_whole_context(target: Context) -> None:
    prompt = PROMPTS[2]
    assert emitted(decode(target, None, prompt)) != emitted(decode(target, None, [prompt[0] + 1, *prompt[1:]]))


@pytest.mark.parametrize("draft_tokens", [1, 2, 4, 8])
@pytest.mark.parametrize("temperature", [0, 1e-6, 0.7, 1, 5])
def test_a_draft_equal_to_the_target_is_always_accepted(
    target: Context, twin: Context, temperature: float, draft_tokens: int
) -> None:
    chain = SamplingChain(temperature, top_k=0, top_p=1, min_p=0)
    rounds = decode(target, twin, PROMPTS[1], chain=chain, draft_tokens=draft_tokens, budget=300)
    assert sum(round_.accepted for round_ in rounds) == sum(round_.drafted for round_ in rounds) > 100
    assert min(overlap for round_ in rounds for overlap in round_.overlaps) > 1 - 1e-5


@pytest.mark.parametrize("budget", range(1, 40))
def test_both_caches_hold_the_text_without_its_last_token_wherever_it_ends(
    target: Context, draft: Context, budget: int
) -> None:
    tokens = emitted(decode(target, draft, PROMPTS[1], chain=UNFILTERED, budget=budget))
    assert len(tokens) == budget
    assert target.length == len(PROMPTS[1]) + budget - 1
    assert target.length - 2 <= draft.length <= target.length  # it reads a bonus token when it drafts again
    text = [*PROMPTS[1], *tokens]
    for model in (target, draft):
        _assert_holds(model, text[: model.length])


def _assert_holds(model: Context, text: list[int]) -> None:
    """The cache of `model` gives what a fresh evaluation of `text` gives."""
    continued = model.extend([1], rows=1)[0].copy()
    model.rewind(0)
    fresh = model.extend([*text, 1], rows=1)[0]
    np.testing.assert_allclose(continued, fresh, atol=1e-4)


@pytest.mark.parametrize("closed_after", range(1, 6))
def test_closing_the_loop_leaves_both_caches_at_the_text(target: Context, draft: Context, closed_after: int) -> None:
    target.rewind(0)
    draft.rewind(0)
    prompt = PROMPTS[1]
    drafter = ModelDrafter(draft, UNFILTERED, vocabulary=259, capacity=512)
    rounds = speculate(
        target,
        drafter,
        prompt,
        chain=UNFILTERED,
        noise=Noise(5),
        budget=100,
        is_end=lambda _: False,
        enough=FixedLength(4),
    )
    text = [*prompt, *emitted(next(rounds) for _ in range(closed_after))]
    rounds.close()
    assert target.length == len(text) - 1
    assert target.length - 1 <= draft.length <= target.length
    for model in (target, draft):
        _assert_holds(model, text[: model.length])


@pytest.mark.parametrize("batch", [1, 2, 7, 64])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_batches_of_any_size_give_the_same_rows(attention_pair: Pair, target: Context, batch: int, rows: int) -> None:
    tokens = list(b"Rows that lie across the border of two batches.")
    target.rewind(0)
    expected = [row.copy() for row in target.extend(tokens, rows=rows)]
    with opened(attention_pair.target, batch=batch, rows=5) as context:
        got = context.extend(tokens, rows=rows)
        assert len(got) == rows
        assert context.length == len(tokens)
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)
        _assert_holds(context, tokens)


def test_rewinding_and_going_on_is_as_if_the_rest_had_never_been(target: Context) -> None:
    target.rewind(0)
    target.extend(list(b"kept and forgotten"), rows=0)
    target.rewind(4)
    assert target.length == 4
    _assert_holds(target, list(b"kept"))


def test_a_context_knows_its_tokens_and_how_many_it_evaluated(attention_pair: Pair) -> None:
    with opened(attention_pair.target, batch=4) as context:
        context.extend(list(b"evaluated"), rows=2)
        context.rewind(3)
        context.extend(list(b"x"), rows=1)
        context.rewind(context.length)
        assert bytes(context.tokens) == b"evax"
        assert context.evaluated == 10


def test_a_refused_rewind_is_an_error(target: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    target.rewind(0)
    target.extend([1, 2, 3], rows=0)
    with monkeypatch.context() as patch:
        patch.setattr(llama(), "llama_memory_seq_rm", lambda *_: False)
        with pytest.raises(ModelError, match=r"^target .*cannot take back"):
            target.rewind(1)
    assert target.length == 3


def test_a_row_is_a_view_that_the_next_pass_overwrites(target: Context) -> None:
    target.rewind(0)
    row = target.extend([1], rows=1)[0]
    before = row.copy()
    target.extend([2], rows=1)
    assert not row.flags.owndata
    assert (row != before).any()


def test_more_tokens_than_the_context_holds_are_refused_before_the_pass(target: Context) -> None:
    target.rewind(0)
    target.extend([1] * 510, rows=0)
    with pytest.raises(ModelError, match="513 tokens do not fit a context of 512"):
        target.extend([1, 2, 3], rows=1)
    assert target.length == 510


def test_ctrl_c_before_a_pass_leaves_the_cache_as_it_was(attention_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt = Interrupt()
    with opened(attention_pair.target, interrupt=interrupt) as context:
        context.extend([1, 2, 3], rows=0)
        interrupt.flag[0] = b"\x01"
        with monkeypatch.context() as patch:
            patch.setattr(llama(), "llama_decode", lambda *_: pytest.fail("a pass was begun"))
            with pytest.raises(KeyboardInterrupt):
                context.extend([4, 5], rows=1)
        interrupt.flag[0] = b"\x00"
        assert context.length == 3
        _assert_holds(context, [1, 2, 3])


def test_ctrl_c_inside_a_pass_ends_it_and_the_cache_can_go_on(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt = Interrupt()
    with opened(attention_pair.target, interrupt=interrupt) as context:
        context.extend([1, 2, 3], rows=0)
        interrupt.flag[0] = b"\x01"
        monkeypatch.setattr(Interrupt, "check", lambda _: None)  # as if it came after the check
        with pytest.raises(KeyboardInterrupt):
            context.extend([4, 5], rows=1)
        interrupt.flag[0] = b"\x00"
        assert 3 <= context.length <= 5
        context.rewind(3)
        _assert_holds(context, [1, 2, 3])


def test_a_pass_that_ends_halfway_counts_what_the_cache_got(target: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    decode_all = llama().llama_decode

    def decode_two(context: Any, batch: Any) -> int:
        batch.n_tokens = 2
        decode_all(context, batch)
        return ABORTED

    target.rewind(0)
    with monkeypatch.context() as patch:
        patch.setattr(llama(), "llama_decode", decode_two)
        with pytest.raises(KeyboardInterrupt):
            target.extend(list(b"halfway"), rows=1)
    assert bytes(target.tokens) == b"ha"
    _assert_holds(target, list(b"ha"))


def test_what_a_second_ctrl_c_leaves_of_a_pass_is_known(target: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    decode_all = llama().llama_decode

    def decode_and_raise(context: Any, batch: Any) -> int:
        decode_all(context, batch)
        raise KeyboardInterrupt

    target.rewind(0)
    with monkeypatch.context() as patch:
        patch.setattr(llama(), "llama_decode", decode_and_raise)
        with pytest.raises(KeyboardInterrupt):
            target.extend(list(b"pressed"), rows=1)
    assert bytes(target.tokens) == b"pressed"
    target.rewind(5)
    _assert_holds(target, list(b"press"))


def test_logits_are_reserved_for_the_wanted_rows_only(attention_pair: Pair) -> None:
    lines: list[str] = []
    show_log(lines.append)
    try:
        with opened(attention_pair.target, rows=3):
            pass
    finally:
        show_log(None)
    assert [line.split("=")[1].strip() for line in lines if "n_outputs_max  " in line] == ["3"]


def test_a_context_that_cannot_be_made_is_an_error_of_one_line(attention_pair: Pair) -> None:
    with pytest.raises(ModelError) as caught, opened(attention_pair.target, cache_type_v="q4_0", flash_attention="off"):
        pass
    assert str(caught.value).startswith("no context of 512 tokens for target ")
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_numbers_are_told_and_nothing_is_drawn_from_them(tmp_path: Path) -> None:
    toy = attention_toy()
    norm = np.full(64, np.nan, np.float32)
    path = replace(toy, tensors={**toy.tensors, "output_norm.weight": norm}).write(tmp_path / "model.gguf")
    with opened(path) as context, pytest.raises(ModelError, match="not numbers"):
        decode(context, None, [1], chain=UNFILTERED)


@pytest.mark.parametrize("rows", [1, 9])
def test_a_prompt_goes_in_the_same_batches_whatever_the_draft_length(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    sizes: list[int] = []
    with opened(attention_pair.target, batch=4, rows=rows) as context:
        evaluate = context._evaluate

        def noted(tokens: Sequence[int], rows: int) -> None:
            sizes.append(len(tokens))
            evaluate(tokens, rows)

        monkeypatch.setattr(context, "_evaluate", noted)
        context.extend([1] * 18, rows=0)
    assert sizes == [4, 4, 4, 4, 2]


def test_a_closed_context_takes_nothing_and_gives_nothing_back(attention_pair: Pair) -> None:
    with opened(attention_pair.target) as context:
        context.extend([1, 2, 3], rows=0)
    context.rewind(1)
    with pytest.raises(ModelError, match="closed"):
        context.extend([1], rows=1)
