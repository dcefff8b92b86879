"""The rules through the real engine, on F32 models that round alike one by one and in a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.decode import Model
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.verify import RULES, Kind
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.llama.context import Context
from tests.core.reference import chain_law
from tests.engine import UNFILTERED, decode, opened
from tests.llama.test_lossless import P, Q
from tests.statistical import emitted, follows
from tests.toy_gguf import memoryless_toy
from tests.wrong_samplers import Sampler

PROMPT = list(b"The rules, the rules")
CHAINS = {
    "unfiltered at 0.5": SamplingChain(0.5, top_k=0, top_p=1, min_p=0),
    "unfiltered at 1": UNFILTERED,
    "unfiltered at 2": SamplingChain(2.0, top_k=0, top_p=1, min_p=0),
    "llama.cpp's filters": SamplingChain(),
    "typical": SamplingChain(1.5, top_k=0, top_p=1, min_p=0, typical_p=0.7),
    "xtc": SamplingChain(1.2, xtc_probability=0.5, xtc_threshold=0.1),
    "penalties": SamplingChain(
        1.0, repeat_penalty=1.3, presence_penalty=0.2, frequency_penalty=0.1, dry_multiplier=0.8
    ),
    "another order": SamplingChain(
        1.5, 10, samplers=("temperature", "penalties", "top_k", "min_p"), repeat_penalty=1.2
    ),
}


def lookup(model: Model, chain: SamplingChain, *, vocabulary: int, capacity: int) -> LookupDrafter:
    """Prompt lookup in the place of a draft model."""
    return LookupDrafter()


Models = tuple[Context, Context, Context]


@pytest.fixture(scope="module")
def models(attention_pair: Pair, bad_draft_pair: Pair) -> Iterator[Models]:
    """A target, a draft that fits it and one that does not."""
    good, bad = attention_pair.draft, bad_draft_pair.draft
    assert isinstance(good, Path)
    assert isinstance(bad, Path)
    with (
        opened(attention_pair.target, size=256) as target,
        opened(good, size=256) as draft,
        opened(bad, size=256) as other,
    ):
        yield target, draft, other


def texts(models: Models, chain: SamplingChain, rule: str, seed: int, lengths: Sequence[int]) -> list[list[int]]:
    """What is said without a draft, and with each draft and draft length."""
    target, good, bad = models
    sampler = Sampler(RULES[rule], ModelDrafter)
    said = [emitted(decode(target, None, PROMPT, chain=chain, budget=50, seed=seed, sampler=sampler))]
    for draft, propose in ((good, ModelDrafter), (bad, ModelDrafter), (good, lookup)):
        for length in lengths:
            drafting = Sampler(RULES[rule], propose)
            run = decode(
                target, draft, PROMPT, chain=chain, draft_tokens=length, budget=50, seed=seed, sampler=drafting
            )
            said.append(emitted(run))
    return said


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_the_coupled_rule_says_the_same_bit_for_bit_with_any_draft_and_none(
    models: Models, chain: SamplingChain
) -> None:
    plain, *drafted = texts(models, chain, "coupled", 7, (1, 3, 8))
    assert len(plain) == 50
    assert len(drafted) == 9
    assert all(text == plain for text in drafted)


def test_other_rules_say_something_else_with_every_draft_length(models: Models) -> None:
    said = texts(models, UNFILTERED, "block", 7, (1, 3, 8))
    assert len({tuple(text) for text in said}) > 2, "or the test above would show nothing"


@pytest.mark.parametrize("rule", RULES)
def test_at_temperature_0_every_rule_and_draft_says_the_same(models: Models, rule: str) -> None:
    plain = emitted(decode(models[0], None, PROMPT, budget=50, seed=99))
    assert all(text == plain for text in texts(models, SamplingChain(0), rule, 1, (1, 8)))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("chain", ["unfiltered at 1", "penalties"])
def test_a_draft_equal_to_the_target_is_always_kept(attention_pair: Pair, chain: str, rule: str) -> None:
    sampler = Sampler(RULES[rule], ModelDrafter)
    with opened(attention_pair.target, size=256) as target, opened(attention_pair.target, size=256) as draft:
        for length in (1, 2, 5, 8):
            options: dict[str, Any] = {"chain": CHAINS[chain], "draft_tokens": length, "sampler": sampler}
            rounds = decode(target, draft, PROMPT, budget=60, seed=2, **options)
            assert all(round_.accepted == round_.drafted and round_.last is Kind.BONUS for round_ in rounds)


@pytest.fixture(scope="module")
def memoryless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Context, Context]]:
    folder = tmp_path_factory.mktemp("rules")
    paths = [memoryless_toy({}, law).write(folder / name) for law, name in ((P, "p.gguf"), (Q, "q.gguf"))]
    with opened(paths[0], size=256, rows=4) as target, opened(paths[1], size=256, rows=1) as draft:
        yield target, draft


@pytest.mark.parametrize(("rule", "drafted"), [("block", True), ("coupled", True), ("coupled", False)])
def test_frequencies_are_those_of_the_filtered_target(
    memoryless: tuple[Context, Context], rule: str, drafted: bool
) -> None:
    target, draft = memoryless
    chain = SamplingChain(0.7, top_k=5, top_p=0.9, min_p=0.1)
    sampler = Sampler(RULES[rule], ModelDrafter)
    runs = [
        decode(
            target, draft if drafted else None, [1], chain=chain, draft_tokens=3, budget=200, seed=seed, sampler=sampler
        )
        for seed in range(12)
    ]
    target.rewind(0)
    law = chain_law(chain, target.extend([1], rows=1)[0])
    assert follows([token for run in runs for token in emitted(run)], law)
