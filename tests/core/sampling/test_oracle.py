"""The sampling chain against llama.cpp's own samplers: the same tokens with the same probabilities.

llama.cpp sums in float32, term by term. Where a threshold lies between its sum and the exact one, a token at
the edge of top-p, typical-p, top-n-sigma or XTC may be in for one and out for the other. Then the plain form in
float64 must side with ours, and it may not happen in more than 1 of 200 rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specdec_cli.core.past import Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.dry import Breakers
from specdec_cli.core.sampling.order import DEFAULT_ORDER
from specdec_cli.core.top_k import Logits
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.llama.weights import Weights
from tests.core.reference import chain_law
from tests.core.sampling.llama_samplers import llama_law
from tests.core.sampling.random_chains import OFF, Case, random_case, random_history, random_options, random_row
from tests.engine import loaded, opened
from tests.enumeration import Law, support
from tests.loops import UNFILTERED
from tests.toy_gguf import FIRST_EXTRA, attention_toy

CHAINS = [
    SamplingChain(),
    SamplingChain(temperature=1.7, top_k=100, top_p=0.99, min_p=0.01),
    replace(UNFILTERED, top_p=0.9, min_p=0.02, temperature=0.5),
    replace(UNFILTERED, top_p=0),
    replace(UNFILTERED, min_p=1),
    replace(UNFILTERED, xtc_probability=1, xtc_threshold=0.51),
    SamplingChain(temperature=0),
    SamplingChain(temperature=0, repeat_penalty=1.5),
]
EXTRA = (b"\n\n", b'":', b"a\n", b":*", b"ab", b"* b")
BREAKERS = (b"\n", b":", b'"', b"*", b"\n\nab", b"ab*", b"a" * 50)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weights]:
    with loaded(attention_toy(extra=EXTRA).write(tmp_path_factory.mktemp("toy") / "toy.gguf")) as weights:
        yield weights


def ours(case: Case, *, probability: float | None = None) -> Law[int]:
    chain = case.chain if probability is None else replace(case.chain, xtc_probability=probability)
    return dict(support(chain.distribution(case.row, Past(case.history, window=chain.window))))


def agree(one: Law[int], other: Law[int]) -> bool:
    """The same ids, each as likely to 1e-5; those below the reach of float32 need not be there."""
    ids = [{token for token, chance in law.items() if chance > 1e-30} for law in (one, other)]
    return ids[0] == ids[1] and all(abs(one[token] - other[token]) <= 1e-5 for token in ids[0])


def disputed(case: Case, **options: Any) -> int:
    """How many of the branches of `case` llama.cpp sees otherwise; the plain form must see them as we do."""
    count = 0
    for strikes in {False, case.chain.xtc_probability > 0}:
        told = ours(case, probability=float(strikes))
        if not agree(told, llama_law(case.chain, case.row, case.history, strikes=strikes, **options)):
            chain = replace(case.chain, xtc_probability=float(strikes))
            assert agree(told, chain_law(chain, case.row, case.history)), chain
            count += 1
    return count


@pytest.mark.parametrize("chain", CHAINS, ids=range(len(CHAINS)))
@pytest.mark.parametrize("size", [50, 3000])
def test_the_chain_leaves_what_llama_cpp_leaves(chain: SamplingChain, size: int) -> None:
    for seed in range(5):
        rng = np.random.default_rng([seed, size])
        case = Case(chain, random_row(rng, size), random_history(rng, size))
        assert agree(ours(case), llama_law(chain, case.row, case.history))


@pytest.mark.parametrize("name", DEFAULT_ORDER)
def test_each_sampler_alone_is_that_of_llama_cpp(name: str) -> None:
    rows = 200
    differing = 0
    for seed in range(rows):
        rng = np.random.default_rng([seed, 77])
        size = int(rng.choice([50, 400, 1500]))
        chain = replace(OFF, **random_options(rng, name))
        differing += disputed(Case(chain, random_row(rng, size), random_history(rng, size)))
    assert differing <= rows // 200


@pytest.mark.parametrize("shuffled", [False, True])
def test_all_of_them_together_are_those_of_llama_cpp_in_any_order(shuffled: bool) -> None:
    rows = 1200
    assert sum(disputed(random_case(seed, shuffled=shuffled)) for seed in range(rows)) <= rows // 200


def test_dry_with_breakers_is_that_of_llama_cpp(toy: Weights) -> None:
    words = [*b'\n:"*abc ', *range(FIRST_EXTRA, FIRST_EXTRA + len(EXTRA))]
    for seed in range(400):
        rng = np.random.default_rng([seed, 5])
        texts = [BREAKERS[at] for at in rng.choice(len(BREAKERS), rng.integers(1, 4), replace=False)]
        chain = replace(OFF, **random_options(rng, "dry"), dry_breakers=resolved(texts, toy))
        some = rng.choice(words, rng.integers(2, 6))
        history = tuple(rng.choice(some, rng.integers(0, 80)).tolist())
        case = Case(chain, random_row(rng, toy.vocabulary_size), history)
        assert agree(ours(case), llama_law(chain, case.row, history, vocab=toy.vocab, breakers=texts)), (seed, texts)


def resolved(texts: Sequence[bytes], weights: Weights) -> Breakers:
    """Breakers as tokens, by trying every token: it holds the text, or ends with a beginning of it and a tail follows.

    Of a text 40 bytes count, of a tail 20 tokens.
    """
    tokenizer = Tokenizer(weights)
    found: dict[int, list[tuple[int, ...]]] = {}
    for text in (text[:40] for text in texts):
        for token in range(weights.vocabulary_size):
            piece = tokenizer.piece(token)
            begun = [n for n in range(1, min(len(piece), len(text) - 1) + 1) if piece.endswith(text[:n])]
            tails = [()] if text in piece else [tuple(tokenizer.encode(text[n:].decode()))[:20] for n in begun]
            found.setdefault(token, []).extend(tails)
    return {token: tuple(tails) for token, tails in found.items() if tails}


@pytest.mark.real
def test_on_a_real_model_the_chain_leaves_what_llama_cpp_leaves(smollm2: Path) -> None:
    text = "The sea was calm. The sea was grey. The keeper said: the sea was"
    with loaded(smollm2) as weights:
        tokens = Tokenizer(weights).encode(text)
    with opened(smollm2) as model:
        rows = [model.extend([token], rows=1)[0].copy() for token in tokens]
    cases = [_real_case(at, rows, tokens) for at in range(60)]
    assert sum(disputed(case) for case in cases) <= 1


def _real_case(seed: int, rows: list[Logits], tokens: list[int]) -> Case:
    place = seed % len(rows)
    chain = random_case(seed, shuffled=seed % 2 == 1, size=rows[place].size).chain
    return Case(chain, rows[place], tuple(tokens[: place + 1]))
