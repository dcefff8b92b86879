"""A real model, whose quantised weights round differently one by one and in a batch: the bounds say by how much.

Activations are rounded to 8 bits before they meet 4-bit weights, so that a difference in the last bit of a sum
can grow to 1/256 of an activation. On SmolLM2-135M Q4_1 that moves logits by up to 0.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from specdec_cli.catalog import Pair, find_pair
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.verify import RULES, Kind
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.llama.context import Context
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings, Placing
from tests.engine import GREEDY, UNFILTERED, Notices, answer, decode, loaded, opened
from tests.statistical import emitted
from tests.worker_process import WorkerProcess
from tests.wrong_samplers import Sampler

pytestmark = pytest.mark.real

NEAR_TIE = 1.0
"""Between two logits that are closer, rounding may decide: five times what it moves one by on the one CPU tried."""

RACE_TIE = 0.5
"""The same for the race of the coupled rule, in logarithms of scores: five times the most in six seeds on that CPU."""

TEXT = "The lighthouse keeper wrote in his diary that the storm"


@pytest.fixture(scope="module")
def twins(smollm2: Path) -> Iterator[tuple[Context, Context]]:
    with opened(smollm2) as target, opened(smollm2) as draft:
        yield target, draft


@pytest.fixture(scope="module")
def exact_twins(smollm2_f32: Path) -> Iterator[tuple[Context, Context]]:
    with opened(smollm2_f32) as target, opened(smollm2_f32) as draft:
        yield target, draft


@pytest.fixture(scope="module")
def prompt(smollm2: Path) -> list[int]:
    with loaded(smollm2) as weights:
        return Tokenizer(weights).encode(TEXT)


def _fork(ours: Sequence[int], theirs: Sequence[int]) -> int | None:
    """Where two texts of one length begin to differ."""
    return next((at for at, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other), None)


def _gap(model: Context, context: list[int]) -> float:
    """How far the most likely token after `context` is ahead of the next."""
    model.rewind(0)
    second, first = np.sort(model.extend(context, rows=1)[0])[-2:]
    return float(first - second)


@pytest.mark.parametrize("chain", [GREEDY, UNFILTERED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("draft_tokens", range(1, 9))
def test_a_model_in_f32_accepts_all_that_it_drafted_itself(
    exact_twins: tuple[Context, Context], prompt: list[int], draft_tokens: int, chain: SamplingChain
) -> None:
    rounds = decode(*exact_twins, prompt, chain=chain, draft_tokens=draft_tokens, budget=24)
    assert sum(round_.drafted for round_ in rounds) >= 12
    assert all(round_.accepted == round_.drafted for round_ in rounds)
    assert min(overlap for round_ in rounds for overlap in round_.overlaps) > 0.9999


@pytest.mark.parametrize("draft_tokens", range(1, 9))
def test_a_model_rejects_its_own_greedy_drafts_at_near_ties_only(
    twins: tuple[Context, Context], prompt: list[int], draft_tokens: int
) -> None:
    rounds = decode(*twins, prompt, draft_tokens=draft_tokens, budget=40)
    text, rejections = list(prompt), 0
    for round_ in rounds:
        text += round_.tokens
        if round_.last is Kind.CORRECTION:
            rejections += 1
            assert _gap(twins[0], text[:-1]) < NEAR_TIE
    assert rejections <= 6


@pytest.mark.parametrize("draft_tokens", range(1, 9))
def test_a_model_nearly_always_accepts_its_own_samples(
    twins: tuple[Context, Context], prompt: list[int], draft_tokens: int
) -> None:
    rounds = decode(*twins, prompt, chain=UNFILTERED, draft_tokens=draft_tokens, budget=40)
    overlaps = [overlap for round_ in rounds for overlap in round_.overlaps]
    assert min(overlaps) > 0.7
    assert np.mean(overlaps) > 0.95


def test_greedy_text_with_and_without_a_draft_forks_at_a_near_tie_only(
    twins: tuple[Context, Context], prompt: list[int]
) -> None:
    target, draft = twins
    plain, drafted = emitted(decode(target, None, prompt, budget=60)), emitted(decode(target, draft, prompt, budget=60))
    fork = _fork(plain, drafted)
    assert fork is None or _gap(target, [*prompt, *plain[:fork]]) < NEAR_TIE


@pytest.mark.parametrize("rule", RULES)
def test_a_model_in_f32_says_the_same_by_every_rule_as_when_it_drafts_for_itself(
    exact_twins: tuple[Context, Context], prompt: list[int], rule: str
) -> None:
    sampler = Sampler(RULES[rule], ModelDrafter)
    rounds = decode(*exact_twins, prompt, chain=UNFILTERED, draft_tokens=4, budget=24, sampler=sampler)
    assert all(round_.accepted == round_.drafted for round_ in rounds)
    if rule == "coupled":
        plain = decode(exact_twins[0], None, prompt, chain=UNFILTERED, budget=24, sampler=sampler)
        assert emitted(rounds) == emitted(plain)


@pytest.mark.parametrize("rule", ["block", "coupled"])
def test_a_model_nearly_always_keeps_its_own_samples_by_the_other_rules(
    twins: tuple[Context, Context], prompt: list[int], rule: str
) -> None:
    sampler = Sampler(RULES[rule], ModelDrafter)
    rounds = decode(*twins, prompt, chain=UNFILTERED, draft_tokens=4, budget=80, sampler=sampler)
    overlaps = [overlap for round_ in rounds for overlap in round_.overlaps]
    assert np.mean(overlaps) > 0.95
    assert sum(round_.accepted for round_ in rounds) > 0.8 * len(overlaps)


def _behind(p: Distribution, chance: Chance, token: int) -> float:
    """By how much `token` loses the race of `chance`: the logarithm of how much likelier it had to be to win."""
    low, high = 0.0, 0.0 if chance.emit(0, p) == token else 64.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        weights = p.weights.astype(np.float64)
        weights[token] *= math.exp(middle)
        low, high = (low, middle) if chance.emit(0, Distribution.of(weights)) == token else (middle, high)
    return high


@pytest.mark.parametrize("seed", [1, 2])
def test_coupled_text_with_and_without_a_draft_forks_at_a_near_tie_of_the_race_only(
    twins: tuple[Context, Context], prompt: list[int], seed: int
) -> None:
    target, draft = twins
    sampler = Sampler(RULES["coupled"], ModelDrafter)
    plain, drafted = (
        emitted(decode(target, each, prompt, chain=UNFILTERED, budget=60, seed=seed, sampler=sampler))
        for each in (None, draft)
    )
    fork = _fork(plain, drafted)
    if fork is not None:
        context = [*prompt, *plain[:fork]]
        target.rewind(0)
        p = UNFILTERED.distribution(target.extend(context, rows=1)[0])
        chance = RULES["coupled"].noise(seed).round(0, len(context))
        gap = max(_behind(p, chance, text[fork]) for text in (plain, drafted))
        assert gap < RACE_TIE, f"the texts fork after {fork} tokens, where the scores differ by {gap:.3f}"


def test_the_default_pair_answers_a_question(smollm2: Path, capfd: pytest.CaptureFixture[str]) -> None:
    memory = Notices()
    pair = find_pair("smollm2", None) if smollm2.name.startswith("SmolLM2") else Pair(smollm2, "lookup")
    with Session(pair, ModelSettings(ctx_size=256), memory.listener) as session:
        tokens = session.prompt_from_messages([{"role": "user", "content": "What is the capital of France?"}])
        assert tokens.count(session.tokenizer.encode("<|im_start|>")[0]) >= 2
        assert b"".join(session.tokenizer.piece(token) for token in tokens).count(b"capital of France") == 1
    assert "Paris" in answer(pair, "The capital of France is", max_tokens=8).text
    assert capfd.readouterr() == ("", "")
    assert memory.notices == []


def test_every_token_of_the_vocabulary_is_printed(smollm2: Path) -> None:
    with loaded(smollm2) as weights:
        tokenizer = Tokenizer(weights)
        pieces = [tokenizer.piece(token) for token in range(weights.vocabulary_size)]
    assert sum(not piece for piece in pieces) < 100
    assert max(len(piece) for piece in pieces) > 12


@pytest.mark.parametrize(
    "text", ["Plain text.", " leading blank", "日本語 🙂‍↔️ ñandú\r\n\ttab", "a" * 3000, "x = [b'\\x00']\n" * 50]
)
def test_what_a_real_tokenizer_reads_it_prints(smollm2: Path, text: str) -> None:
    with loaded(smollm2) as weights:
        tokenizer = Tokenizer(weights)
        assert b"".join(tokenizer.piece(token) for token in tokenizer.encode(text)) == text.encode()


@pytest.mark.parametrize("draft", ["none", "lookup"])
def test_greedy_text_on_workers_forks_from_the_local_one_at_a_near_tie_only(
    smollm2: Path, twins: tuple[Context, Context], prompt: list[int], draft: Literal["none", "lookup"]
) -> None:
    """ggml's RPC keeps weights as they are, where the CPU backend packs them anew for other kernels."""
    local = answer(Pair(smollm2, "none"), TEXT, max_tokens=60).generation.tokens
    with WorkerProcess() as first, WorkerProcess() as second:
        placing = Placing((first.endpoint, second.endpoint))
        remote = answer(Pair(smollm2, draft), TEXT, settings=ModelSettings(threads=1, placing=placing), max_tokens=60)
    assert remote.notices[0].startswith("target ")
    fork = _fork(local, remote.generation.tokens)
    assert fork is None or _gap(twins[0], [*prompt, *local[:fork]]) < NEAR_TIE


def test_greedy_text_of_f32_weights_on_a_worker_is_the_local_one(smollm2_f32: Path) -> None:
    exact = ModelSettings(threads=1, cache_type_k="f32", cache_type_v="f32", flash_attn="off")
    local = answer(Pair(smollm2_f32, "none"), TEXT, settings=exact, max_tokens=40).generation.tokens
    with WorkerProcess() as worker:
        settings = replace(exact, placing=Placing((worker.endpoint,)))
        remote = answer(Pair(smollm2_f32, "lookup"), TEXT, settings=settings, max_tokens=40).generation.tokens
    assert remote == local
