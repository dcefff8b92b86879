"""The distribution of what the real engine says, against the law worked out by hand.

Every assertion that a right engine could fail by bad luck does so once in 10^9 seeds (`tests.statistical`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.llama.context import Context
from tests.core.reference import chain_law
from tests.engine import decode, opened
from tests.statistical import emitted, follows
from tests.toy_gguf import memoryless_toy
from tests.wrong_samplers import RIGHT, WRONG, Sampler

P = {65: 2.0, 66: 1.6, 67: 1.1, 68: 0.7, 69: 0.2, 70: -1.5}
Q = {65: 0.3, 66: 1.5, 67: -0.5, 68: 1.9, 69: 1.2, 71: 1.0}
"""Two laws that disagree: each knows a token that the other never says."""

RUNS, TOKENS = 20, 200
"""4000 tokens a law, in runs that are short enough for attention to cost little."""

UNFILTERED = SamplingChain(0.7, top_k=0, top_p=1, min_p=0)
CHAINS = {
    "none": UNFILTERED,
    "top-k": SamplingChain(0.7, top_k=3, top_p=1, min_p=0),
    "top-p": SamplingChain(0.7, top_k=0, top_p=0.8, min_p=0),
    "min-p": SamplingChain(0.7, top_k=0, top_p=1, min_p=0.2),
    "all of them": SamplingChain(0.7, top_k=5, top_p=0.9, min_p=0.1),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Context]]:
    folder = tmp_path_factory.mktemp("lossless")
    paths = [memoryless_toy({}, law).write(folder / name) for law, name in ((P, "p.gguf"), (Q, "q.gguf"))]
    with opened(paths[0], size=256, rows=4) as target, opened(paths[1], size=256, rows=1) as draft:
        yield target, draft


def _row_law(model: Context, chain: SamplingChain) -> dict[int, float]:
    model.rewind(0)
    return dict(chain_law(chain, model.extend([1], rows=1)[0]))


def _said(
    models: tuple[Context, Context], chain: SamplingChain, sampler: Sampler = RIGHT, runs: int = RUNS
) -> list[int]:
    rounds = (
        decode(*models, [1], chain=chain, draft_tokens=3, budget=TOKENS, seed=seed, sampler=sampler)
        for seed in range(runs)
    )
    return [token for run in rounds for token in emitted(run)]


def test_the_toy_gives_the_law_that_it_was_built_for(models: tuple[Context, Context]) -> None:
    target = models[0]
    target.rewind(0)
    for row in target.extend([1, 65, 200], rows=3):
        assert {token: float(row[token]) for token in P} == pytest.approx(P, abs=1e-6)
        assert sorted(row)[-len(P) - 1] == -1e4


@pytest.mark.parametrize("name", CHAINS)
def test_frequencies_are_those_of_the_filtered_target(models: tuple[Context, Context], name: str) -> None:
    law = _row_law(models[0], CHAINS[name])
    assert len(law) >= 3
    said = _said(models, CHAINS[name])
    assert len(said) == RUNS * TOKENS
    assert follows(said, law)


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_sampler_is_found_out(models: tuple[Context, Context], name: str) -> None:
    said = _said(models, UNFILTERED, WRONG[name], runs=RUNS // 2)
    assert not follows(said, _row_law(models[0], UNFILTERED))


@pytest.mark.parametrize("drafted", [False, True], ids=["alone", "with a draft"])
def test_whole_texts_of_a_model_with_memory_follow_its_law(attention_pair: Pair, drafted: bool) -> None:
    chain = SamplingChain(3.0, top_k=3, top_p=1, min_p=0)
    prompt = list(b"memory")
    assert isinstance(attention_pair.draft, Path)
    with opened(attention_pair.target) as target, opened(attention_pair.draft) as draft:
        law = _text_law(target, chain, prompt, 3)
        texts = [
            tuple(
                emitted(
                    decode(target, draft if drafted else None, prompt, chain=chain, draft_tokens=2, budget=3, seed=seed)
                )
            )
            for seed in range(1200)
        ]
    assert len(law) == 27
    assert follows(texts, law)


def _text_law(target: Context, chain: SamplingChain, prompt: list[int], length: int) -> dict[tuple[int, ...], float]:
    """The probability of every text of `length` tokens after `prompt`, each evaluated from nothing."""
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(length):
        longer: dict[tuple[int, ...], float] = {}
        for text, probability in law.items():
            target.rewind(0)
            row = target.extend([*prompt, *text], rows=1)[0]
            longer |= {(*text, token): probability * chance for token, chance in chain_law(chain, row).items()}
        law = longer
    return law
