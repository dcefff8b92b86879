"""The two loops on strict toys: what they say, what they evaluate, and how they leave their caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from specdec_cli.core.decode import Round, autoregress
from specdec_cli.core.noise import Noise
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.stats import Counters
from specdec_cli.core.top_k import Logits
from specdec_cli.core.verify import Kind
from specdec_cli.drafters.lookup import LookupDrafter
from tests.core.reference import chain_law
from tests.loops import GREEDY, UNFILTERED, drafter_of, plain, run, speculative
from tests.statistical import emitted, follows
from tests.toys import LogitsOf, ScriptedDrafter, TableModel, by_context, by_last_token, chained

LENGTHS = range(1, 9)
P, Q = by_context(1, 5), by_context(2, 5)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    "chain", [GREEDY, replace(UNFILTERED, temperature=1e-6), UNFILTERED, replace(UNFILTERED, temperature=5)]
)
def test_a_draft_equal_to_the_target_is_always_kept(length: int, chain: SamplingChain) -> None:
    counters = Counters()
    for round_ in speculative(P, P, chain, enough=length)((0,), 300, Noise(2)):
        counters.add(round_)
        assert round_.accepted == round_.drafted
    assert counters.acceptance_rate == counters.alpha == 1
    assert counters.expected_alpha == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("draft", [P, Q, by_context(3, 5)])
def test_greedy_text_is_that_of_plain_decoding_whatever_the_draft(length: int, draft: LogitsOf) -> None:
    loop = speculative(P, draft, GREEDY, enough=length)
    assert emitted(loop((0, 1), 60, Noise(1))) == emitted(plain(P, GREEDY)((0, 1), 60, Noise(9)))


def test_a_round_tells_which_tokens_of_its_block_were_not_kept() -> None:
    drafter = ScriptedDrafter(lambda _: (1, 2, 2, 1))
    target = TableModel(chained(0, 1, 2, vocabulary=3))
    first = next(run(target, drafter, (0,), chain=GREEDY, enough=4, budget=9))
    assert (first.tokens, first.accepted, first.rejected) == ((1, 2, 0), 2, (2, 1))


def test_greedy_text_is_that_of_plain_decoding_with_prompt_lookup() -> None:
    prompt = (0, 1, 2, 0, 1, 2, 0)
    told = emitted(run(TableModel(P), LookupDrafter(), prompt, budget=80))
    assert told == emitted(plain(P, GREEDY)(prompt, 80, Noise(1)))


def test_a_seed_repeats_a_run_and_another_seed_gives_another() -> None:
    loop = speculative(P, Q, UNFILTERED, enough=3)
    runs = [list(loop((0,), 60, Noise(seed))) for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert emitted(runs[0]) != emitted(runs[2])


@pytest.mark.parametrize("chain", [GREEDY, UNFILTERED])
@pytest.mark.parametrize("after", range(1, 8))
def test_closing_after_any_round_leaves_both_caches_at_the_text_without_its_last_token(
    chain: SamplingChain, after: int
) -> None:
    target, draft = TableModel(P), TableModel(Q)
    text = [0, 1, 2]
    rounds = run(target, drafter_of(draft, chain), text, chain=chain)
    for _ in range(after):
        text += next(rounds).tokens
        assert target.tokens == text[:-1]
        assert draft.tokens == text[: len(draft.tokens)]
        assert len(text) - 2 <= len(draft.tokens) <= len(text) - 1
    rounds.close()
    assert target.tokens == text[:-1]
    assert draft.tokens == text[: len(draft.tokens)]


class Interrupted(TableModel):
    """Ctrl-C in the middle of its `at`-th pass: one token of it was evaluated."""

    at = 3

    def extend(self, tokens: Sequence[int], rows: int) -> list[Logits]:
        if len(self.calls) + 1 == self.at:
            super().extend(tokens[:1], 0)
            raise KeyboardInterrupt
        return super().extend(tokens, rows)


def emitted_until_interrupted(rounds: Iterator[Round]) -> list[int]:
    """What is emitted before the interruption, which must come."""
    told: list[int] = []
    while True:
        try:
            told += next(rounds).tokens
        except KeyboardInterrupt:
            return told


@pytest.mark.parametrize("interrupts_target", [True, False])
def test_an_interrupted_pass_leaves_caches_that_agree_with_the_emitted_text(interrupts_target: bool) -> None:
    target = Interrupted(P) if interrupts_target else TableModel(P)
    draft = TableModel(P) if interrupts_target else Interrupted(P)
    text = [0]
    text += emitted_until_interrupted(run(target, drafter_of(draft), enough=2 if interrupts_target else 1))
    assert target.tokens == text[:-1]
    assert draft.tokens == text[: len(draft.tokens)]
    assert len(draft.tokens) < len(text)


def test_an_interrupted_plain_pass_leaves_a_cache_that_agrees_with_the_emitted_text() -> None:
    target, text = Interrupted(P), [0]
    rounds = autoregress(target, text, chain=GREEDY, noise=Noise(1), budget=9, is_end=lambda _: False)
    text = [*text, *emitted_until_interrupted(rounds)]
    assert len(text) == 3
    assert target.tokens == text[: len(target.tokens)]


class Forgetless(TableModel):
    """A recurrent model: what it has read cannot be taken back."""

    def rewind(self, length: int) -> None:
        raise AssertionError("nothing may be taken back")


def test_plain_decoding_takes_nothing_back_to_its_very_end() -> None:
    target = Forgetless(chained(0, 1, 2, 3, vocabulary=4))
    rounds = autoregress(target, [0], chain=GREEDY, noise=Noise(1), budget=9, is_end=lambda token: token == 3)
    assert emitted(rounds) == [1, 2]


@pytest.mark.parametrize("length", [1, 4])
def test_no_token_of_an_accepted_block_is_evaluated_twice(length: int) -> None:
    target, draft = TableModel(P), TableModel(P)
    list(run(target, drafter_of(draft), (0, 1, 2), budget=40, enough=length))
    assert target.evaluated == 3 + 40 - 1
    assert draft.evaluated <= target.evaluated


@pytest.mark.parametrize("length", [None, 0, 1, 4])
def test_every_round_has_fresh_noise(length: int | None) -> None:
    target, draft = by_last_token([[1.0, 0.2, -0.5]] * 3), by_last_token([[0.2, 1.2, 0.3]] * 3)
    loop = plain(target, UNFILTERED) if length is None else speculative(target, draft, UNFILTERED, enough=length)
    text, law = emitted(loop((0,), 4000, Noise(6))), chain_law(UNFILTERED, target((0,)))
    pairs = zip(text[::2], text[1::2], strict=True)
    assert follows(list(pairs), {(x, y): law[x] * law[y] for x in law for y in law})


def test_drafting_nothing_is_plain_decoding_by_the_same_loop() -> None:
    target, draft = TableModel(P), TableModel(Q)
    rounds = list(run(target, drafter_of(draft), budget=10, enough=0))
    assert [round_.kinds for round_ in rounds] == [(Kind.BONUS,)] * 10
    assert draft.evaluated == 0
    assert target.calls == [(1, 1)] * 10


def test_a_prompt_that_was_read_before_is_not_read_again() -> None:
    target, draft = TableModel(P), TableModel(P)
    prompt = (0, 1, 2, 3)
    drafter = drafter_of(draft)
    target.extend(prompt[:-1], 0)
    drafter.prefill(prompt)
    next(run(target, drafter, prompt, enough=2))
    assert target.calls == [(3, 0), (3, 3)]
    assert draft.calls == [(3, 0), (1, 1), (1, 1)]


def test_the_draft_is_told_where_the_text_went_after_every_round() -> None:
    drafter = ScriptedDrafter(lambda _: [1, 2])
    texts = [len(round_.tokens) for round_ in run(TableModel(chained(0, 1, 2, vocabulary=3)), drafter, budget=9)]
    lengths = np.cumsum(texts).tolist()
    assert drafter.rewound_to == [*lengths, lengths[-1]]
