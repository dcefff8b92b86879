"""Models that cannot take tokens back, and windows that slide: going back is as exact as where it is easy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specdec_cli.core.decode import Drafter, Round, StopRule, speculate
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Chance, Noise
from specdec_cli.core.past import Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.verify import Proposal
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.llama.context import ABORTED, Context
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import llama
from specdec_cli.llama.snapshots import MOST_OWED
from tests.engine import GREEDY, decode, opened
from tests.statistical import emitted
from tests.toy_gguf import attention_toy
from tests.toy_kinds import KINDS, RECURRENT, WINDOW, kind_toy

PROMPT = list(b"The quick brown fox jumps")
WRITES_STATES = ("lfm2", "qwen35")
"""Those of which llama.cpp keeps the last states of a pass; the others go by snapshots as targets too."""
CLOSE = 5e-4
"""How far a logit may be rounded otherwise after other batches; what is of another text is off by whole numbers."""


class Models:
    """Files of one kind: a target, a draft that agrees with it where greedy, and one that is nearly always wrong."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.target = kind_toy(kind, 3.0).write(folder / "target.gguf")
        self.fitting = kind_toy(kind, 2.0).write(folder / "fitting.gguf")
        self.wrong = kind_toy(kind, 2.0, seed=8).write(folder / "wrong.gguf")


@pytest.fixture(scope="module", params=KINDS)
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module", params=RECURRENT)
def recurrent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as contexts:
        yield contexts


class Teller:
    """Proposes what it was told would come, but wrong from a position on that goes round in a circle."""

    name = "teller"
    exhausted = False

    def __init__(self, prompt: Sequence[int], text: Sequence[int], right: Sequence[int]) -> None:
        self._text = [*prompt, *text]
        self._right = itertools.cycle(right)

    def prefill(self, prompt: Sequence[int]) -> None:
        pass

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        proposal, right = Proposal(source=self.name), next(self._right)
        for position, token in enumerate(self._text[len(context) :]):
            if enough(proposal):
                break
            guess = token if position < right else (token + 1) % 256
            proposal = proposal.followed_by(guess, Distribution.one_hot(guess), 1.0)
        return proposal

    def rewind(self, length: int) -> None:
        pass


def _speculated(target: Context, drafter: Drafter, draft_tokens: int, budget: int = 100) -> list[Round]:
    target.rewind(0)
    target.extend(PROMPT[:-1], rows=0)
    drafter.prefill(PROMPT)
    enough, noise = FixedLength(draft_tokens), Noise(1)
    rest: dict[str, Any] = {"budget": budget, "is_end": lambda _: False, "enough": enough}
    return list(speculate(target, drafter, PROMPT, chain=GREEDY, noise=noise, **rest))


def _sizes(context: Context, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each pass of `context` evaluates from now on."""
    sizes: list[int] = []
    evaluate = context._evaluate

    def noted(tokens: Sequence[int], rows: int) -> None:
        sizes.append(len(tokens))
        evaluate(tokens, rows)

    monkeypatch.setattr(context, "_evaluate", noted)
    return sizes


def _plain(models: Models, budget: int = 100) -> list[int]:
    with opened(models.target) as context:
        return emitted(decode(context, None, PROMPT, budget=budget))


@pytest.mark.parametrize("draft_tokens", [1, 2, 3, 5, 8])
def test_greedy_text_is_the_same_with_any_draft(models: Models, stack: ExitStack, draft_tokens: int) -> None:
    plain = _plain(models)
    assert len(set(plain)) > 20
    target = stack.enter_context(opened(models.target, rows=draft_tokens + 1, snapshots=1))
    shares = []
    for path in (models.fitting, models.wrong):
        draft = stack.enter_context(opened(path, rows=1, snapshots=draft_tokens))
        rounds = decode(target, draft, PROMPT, draft_tokens=draft_tokens)
        assert emitted(rounds) == plain
        shares.append(sum(each.accepted for each in rounds) / sum(each.drafted for each in rounds))
    assert shares[0] == 1
    assert shares[1] < 0.1


@pytest.mark.parametrize("draft_tokens", [1, 4, 8, 20])
def test_greedy_text_is_the_same_however_much_of_a_block_is_right(
    models: Models, stack: ExitStack, draft_tokens: int
) -> None:
    plain = _plain(models)
    target = stack.enter_context(opened(models.target, rows=draft_tokens + 1, snapshots=1))
    teller = Teller(PROMPT, plain, right=[*range(draft_tokens + 1), 0, 0, 1])
    rounds = _speculated(target, teller, draft_tokens)
    assert emitted(rounds) == plain
    assert {each.accepted for each in rounds} >= {0, 1}


def test_greedy_text_is_the_same_with_lookup(models: Models, stack: ExitStack) -> None:
    plain = _plain(models, budget=200)
    drafter = LookupDrafter([plain[20:60], plain[90:120]])
    rounds = _speculated(stack.enter_context(opened(models.target, snapshots=1)), drafter, 6, budget=200)
    assert emitted(rounds) == plain
    assert 20 < sum(each.accepted for each in rounds) < sum(each.drafted for each in rounds)


@pytest.mark.parametrize("draft_tokens", [1, 3, 8])
@pytest.mark.parametrize("temperature", [0, 0.7, 1])
def test_a_draft_equal_to_the_target_is_always_accepted(
    models: Models, stack: ExitStack, temperature: float, draft_tokens: int
) -> None:
    target = stack.enter_context(opened(models.target, rows=draft_tokens + 1, snapshots=1))
    twin = stack.enter_context(opened(models.target, rows=1, snapshots=draft_tokens))
    chain = SamplingChain(temperature, top_k=0, top_p=1, min_p=0)
    rounds = decode(target, twin, PROMPT, chain=chain, draft_tokens=draft_tokens, budget=150)
    overlaps = [overlap for each in rounds for overlap in each.overlaps]
    assert min(overlaps) > 1 - CLOSE
    assert sum(each.accepted for each in rounds) == sum(each.drafted for each in rounds) > 70


@pytest.mark.parametrize("recurrent_target", [True, False])
def test_recurrent_models_go_with_others(
    recurrent: Models, stack: ExitStack, tmp_path: Path, recurrent_target: bool
) -> None:
    attention = attention_toy(3.0).write(tmp_path / "attention.gguf")
    paths = (recurrent.target, attention) if recurrent_target else (attention, recurrent.target)
    target = stack.enter_context(opened(paths[0], rows=5, snapshots=1))
    draft = stack.enter_context(opened(paths[1], rows=1, snapshots=4))
    plain = emitted(decode(target, None, PROMPT))
    assert emitted(decode(target, draft, PROMPT)) == plain


@pytest.mark.parametrize("options", [{"rows": 6, "snapshots": 1}, {"rows": 1, "snapshots": 3}, {"rows": 6}], ids=str)
def test_any_rewinds_give_what_a_fresh_context_gives(models: Models, stack: ExitStack, options: dict[str, Any]) -> None:
    generator = np.random.default_rng(3)
    context = stack.enter_context(opened(models.target, size=120, **options))
    fresh = stack.enter_context(opened(models.target, size=120))
    text: list[int] = []
    for _ in range(250):
        length = int(generator.integers(0, len(text) + 1)) if generator.random() < 0.05 else max(0, len(text) - 6)
        if len(text) > 100 or generator.random() < 0.45:
            length = int(generator.integers(length, len(text) + 1))
            context.rewind(length)
            del text[length:]
        count = int(generator.integers(1, 8))
        rows = int(generator.integers(0, min(count, options["rows"]) + 1))
        tokens = generator.integers(0, 256, count).tolist()
        got = [row.copy() for row in context.extend(tokens, rows=rows)]
        text += tokens
        assert context.length == len(text)
        fresh.rewind(0)
        np.testing.assert_allclose(got, fresh.extend(text, rows=rows), atol=CLOSE)
        if len(text) > 110:
            context.rewind(90)
            del text[90:]


def test_a_draft_goes_back_to_the_very_bits(recurrent: Models, stack: ExitStack) -> None:
    context, fresh = (stack.enter_context(opened(recurrent.target, rows=1, snapshots=4)) for _ in range(2))
    context.extend(PROMPT, rows=0)
    fresh.extend(PROMPT, rows=0)
    for kept in (3, 0, 1, 2, 0, 0):
        before = context.length
        for token in (1, 2, 3, 4):
            context.extend([token], rows=1)
        context.rewind(before + kept)
        for token in range(1, kept + 1):
            fresh.extend([token], rows=1)
        assert (context.extend([9], rows=1)[0] == fresh.extend([9], rows=1)[0]).all()


def test_a_pass_after_a_rejection_evaluates_little_again(
    recurrent: Models, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _plain(recurrent)
    target = stack.enter_context(opened(recurrent.target, rows=6, snapshots=1))
    sizes = _sizes(target, monkeypatch)
    rounds = _speculated(target, Teller(PROMPT, plain, right=[0, 1, 2, 5, 0, 0, 0]), 5)
    assert len(rounds) > 20
    assert max(sizes[1:]) <= 6 + MOST_OWED
    if recurrent.kind in WRITES_STATES:
        assert max(sizes[1:]) == 6
        assert len(sizes) == 1 + len(rounds)
    else:
        assert len(sizes) < 1 + 2 * len(rounds)


def test_no_states_are_kept_in_plain_decoding_nor_of_models_with_rows_for_each_token(
    models: Models, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama(), "llama_memory_seq_cp", lambda *_: pytest.fail("a state was kept"))
    decode(stack.enter_context(opened(models.target)), None, PROMPT)
    if models.kind not in RECURRENT:
        target = stack.enter_context(opened(models.target, snapshots=1))
        decode(target, stack.enter_context(opened(models.wrong, rows=1, snapshots=4)), PROMPT)


def test_a_draft_never_needs_its_prompt_again(
    recurrent: Models, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = stack.enter_context(opened(recurrent.target, rows=6, snapshots=1))
    draft = stack.enter_context(opened(recurrent.wrong, rows=1, snapshots=5))
    sizes = _sizes(draft, monkeypatch)
    decode(target, draft, PROMPT, draft_tokens=5)
    assert max(sizes[1:]) <= 2


def test_without_a_state_that_is_old_enough_all_is_evaluated_again(recurrent: Models, stack: ExitStack) -> None:
    context = stack.enter_context(opened(recurrent.target, rows=4, snapshots=1))
    fresh = stack.enter_context(opened(recurrent.target))
    context.extend(PROMPT, rows=1)
    context.extend([1, 2, 3], rows=3)
    context.rewind(5)
    assert context.length == 5
    np.testing.assert_allclose(context.extend([8], rows=1), fresh.extend([*PROMPT[:5], 8], rows=1), atol=CLOSE)


@pytest.mark.parametrize("back", [2, 4, 20])
def test_an_empty_pass_pays_what_is_owed(
    models: Models, stack: ExitStack, monkeypatch: pytest.MonkeyPatch, back: int
) -> None:
    context = stack.enter_context(opened(models.target, rows=5, snapshots=1))
    context.extend(PROMPT, rows=0)
    context.extend([1, 2, 3, 4, 5], rows=5)
    context.rewind(context.length - back)
    length = context.length
    assert context.extend([], rows=0) == ()
    assert context.length == length
    sizes = _sizes(context, monkeypatch)
    context.extend([6], rows=1)
    assert sizes == [1]


@pytest.mark.parametrize("lost", ["kept", "restored"])
def test_a_state_that_llama_cpp_did_not_copy_is_not_gone_on_from(
    recurrent: Models, stack: ExitStack, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    plain, copy = _plain(recurrent), llama().llama_memory_seq_cp

    def copy_some(memory: Any, source: int, destination: int, *positions: int) -> None:
        if lost != ("kept" if destination else "restored"):
            copy(memory, source, destination, *positions)

    monkeypatch.setattr(llama(), "llama_memory_seq_cp", copy_some)
    target = stack.enter_context(opened(recurrent.target, rows=5, snapshots=1))
    assert emitted(decode(target, stack.enter_context(opened(recurrent.wrong, rows=1, snapshots=4)), PROMPT)) == plain


@pytest.mark.parametrize("rewinds", [[4], [1, 3], [2, 2], [3, 1], [5]], ids=str)
def test_states_of_an_earlier_pass_are_never_gone_on_from(
    recurrent: Models, stack: ExitStack, rewinds: list[int]
) -> None:
    context = stack.enter_context(opened(recurrent.target, rows=7, snapshots=1))
    fresh = stack.enter_context(opened(recurrent.target))
    text = [*PROMPT, 1, 2, 3, 4, 5, 6, 7, 8]
    context.extend(PROMPT, rows=0)
    context.extend(text[len(PROMPT) : -1], rows=7)
    context.extend(text[-1:], rows=1)
    for count in rewinds:
        context.rewind(context.length - count)
    expected = fresh.extend([*text[: -sum(rewinds)], 9], rows=1)
    np.testing.assert_allclose(context.extend([9], rows=1), expected, atol=CLOSE)


@pytest.mark.parametrize("snapshots", [0, 1])
@pytest.mark.parametrize("rows", [1, 4])
def test_ctrl_c_inside_a_pass_spoils_no_state(
    recurrent: Models, stack: ExitStack, monkeypatch: pytest.MonkeyPatch, rows: int, snapshots: int
) -> None:
    interrupt = Interrupt()
    context = stack.enter_context(opened(recurrent.target, rows=rows, snapshots=snapshots, interrupt=interrupt))
    fresh = stack.enter_context(opened(recurrent.target))
    context.extend(PROMPT, rows=1)
    decode_all = llama().llama_decode

    def broken_off(pointer: Any, batch: Any) -> int:
        """The pass does all its work on the state and is then broken off."""
        decode_all(pointer, batch)
        return ABORTED

    with monkeypatch.context() as patch:
        patch.setattr(llama(), "llama_decode", broken_off)
        with pytest.raises(KeyboardInterrupt):
            context.extend([1, 2, 3, 4], rows=rows)
    assert context.length == len(PROMPT)
    context.rewind(len(PROMPT) - 1)
    np.testing.assert_allclose(context.extend([5], rows=1), fresh.extend([*PROMPT[:-1], 5], rows=1), atol=CLOSE)


def test_a_pass_that_llama_cpp_breaks_off_itself_is_recovered_from(
    recurrent: Models, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt = Interrupt()
    context = stack.enter_context(opened(recurrent.target, rows=4, snapshots=1, interrupt=interrupt))
    fresh = stack.enter_context(opened(recurrent.target))
    context.extend(PROMPT, rows=1)
    interrupt.flag[0] = b"\x01"
    with monkeypatch.context() as patch:
        patch.setattr(Interrupt, "check", lambda _: None)  # as if it came after the check
        with pytest.raises(KeyboardInterrupt):
            context.extend([1, 2, 3, 4], rows=4)
    interrupt.flag[0] = b"\x00"
    assert context.length == len(PROMPT)
    np.testing.assert_allclose(context.extend([5], rows=1), fresh.extend([*PROMPT, 5], rows=1), atol=CLOSE)


@pytest.mark.parametrize("options", [{"rows": 6, "snapshots": 1}, {"rows": 1, "snapshots": 5}], ids=str)
def test_rejected_tokens_and_kept_states_leave_the_whole_context_to_the_text(
    recurrent: Models, stack: ExitStack, options: dict[str, Any]
) -> None:
    context = stack.enter_context(opened(recurrent.target, size=512, **options))
    context.extend([1] * 400, rows=0)
    while context.length < 506:
        for _ in range(6 // options["rows"]):
            context.extend([2] * options["rows"], rows=options["rows"])
        context.rewind(context.length - 4)
    context.extend([3] * 6, rows=1)
    assert context.length == 512


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_batches_of_any_size_go_with_states(recurrent: Models, stack: ExitStack, batch: int) -> None:
    plain = _plain(recurrent)
    target = stack.enter_context(opened(recurrent.target, batch=batch, rows=5, snapshots=1))
    draft = stack.enter_context(opened(recurrent.fitting, batch=batch, rows=1, snapshots=4))
    assert emitted(decode(target, draft, PROMPT)) == plain


def test_going_back_counts_as_time_of_the_model(recurrent: Models, stack: ExitStack) -> None:
    context = stack.enter_context(opened(recurrent.target, rows=1, snapshots=2))
    context.extend([1, 2, 3], rows=1)
    before = context.seconds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("specdec_cli.llama.context.time.perf_counter", itertools.count(0, 7).__next__)
        context.rewind(1)
    assert context.seconds == before + 7


def test_a_window_that_slid_can_be_gone_back_to(tmp_path: Path, stack: ExitStack) -> None:
    path = kind_toy("gemma3", 3.0).write(tmp_path / "model.gguf")
    context, fresh = (stack.enter_context(opened(path, size=1024, batch=8, rows=2)) for _ in range(2))
    text = [(17 * index) % 256 for index in range(5 * WINDOW)]
    context.extend([*text, *[1] * 300], rows=0)  # more than the 256 that a smaller cache would be rounded up to
    context.rewind(len(text))
    np.testing.assert_allclose(context.extend([7], rows=1), fresh.extend([*text, 7], rows=1), atol=CLOSE)


def test_the_toys_remember_their_beginning_and_differ_from_each_other(tmp_path: Path, stack: ExitStack) -> None:
    texts = []
    for kind in KINDS:
        context = stack.enter_context(opened(kind_toy(kind, 3.0).write(tmp_path / f"{kind}.gguf")))
        texts.append(emitted(decode(context, None, PROMPT)))
        assert texts[-1] != emitted(decode(context, None, [PROMPT[0] + 1, *PROMPT[1:]]))
    assert len(set(map(tuple, texts))) == len(KINDS)
