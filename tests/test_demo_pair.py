"""The pair that comes with the package: SmolLM2 and the small model that was made for it out of its own answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.stats import Counters
from specdec_cli.core.verify import RULES
from specdec_cli.distil.prompts import held_out_prompts
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.generation import Request
from specdec_cli.llama.context import Context
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.pair_table import shipped_table
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from tests.engine import GREEDY, Notices, decode, loaded, opened
from tests.statistical import emitted
from tests.wrong_samplers import Sampler

DRAFT = shipped_table().parent / "drafts" / "smollm2-draft.gguf"
TEXT = "<|im_start|>user\nWhat do honeybees do in winter?<|im_end|>\n<|im_start|>assistant\n"
MEGABYTE = 10**6


@pytest.fixture(scope="module")
def exact_pair(smollm2_f32: Path) -> Iterator[tuple[Context, Context]]:
    with opened(smollm2_f32) as target, opened(DRAFT) as draft:
        yield target, draft


@pytest.fixture(scope="module")
def prompt(smollm2: Path) -> list[int]:
    with loaded(smollm2) as weights:
        return Tokenizer(weights).encode(TEXT)


def test_its_draft_is_small() -> None:
    assert MEGABYTE < DRAFT.stat().st_size <= 12 * MEGABYTE


def test_its_licence_and_its_card_are_beside_it() -> None:
    assert "Apache License" in DRAFT.with_name("LICENSE").read_text("utf-8")
    assert f"{DRAFT.stat().st_size / MEGABYTE:.1f} MB" in DRAFT.with_suffix(".md").read_text("utf-8")


@pytest.mark.real
@pytest.mark.parametrize("draft_tokens", [1, 3, 8])
def test_greedy_text_of_the_target_in_f32_is_the_same_with_and_without_it(
    exact_pair: tuple[Context, Context], prompt: list[int], draft_tokens: int
) -> None:
    target, draft = exact_pair
    plain = emitted(decode(target, None, prompt, budget=60))
    rounds = decode(target, draft, prompt, draft_tokens=draft_tokens, budget=60)
    assert emitted(rounds) == plain
    assert 0 < sum(each.accepted for each in rounds) < sum(each.drafted for each in rounds)


@pytest.mark.real
@pytest.mark.parametrize("seed", [1, 2])
def test_coupled_text_of_the_target_in_f32_is_the_same_with_and_without_it(
    exact_pair: tuple[Context, Context], prompt: list[int], seed: int
) -> None:
    target, draft = exact_pair
    sampler, chain = Sampler(RULES["coupled"], ModelDrafter), SamplingChain()
    plain, drafted = (
        emitted(decode(target, each, prompt, chain=chain, budget=60, seed=seed, sampler=sampler))
        for each in (None, draft)
    )
    assert plain == drafted


@pytest.mark.real
@pytest.mark.parametrize(("chain", "least"), [(SamplingChain(), 0.33), (GREEDY, 0.33)], ids=["sampled", "greedy"])
def test_it_guesses_about_as_well_as_its_card_says(smollm2: Path, chain: SamplingChain, least: float) -> None:
    counters = Counters()
    with Session(Pair(smollm2, DRAFT), ModelSettings(), Notices().listener) as session:
        for seed, each in enumerate(held_out_prompts()[:8]):
            asked = session.prompt_from_messages([{"role": "user", "content": each.text}])
            generation = session.generate(asked, Request(chain, seed, draft_tokens=4, max_tokens=80))
            for _ in generation:
                pass
            counters.include(generation.counters)
    assert counters.examined > 200
    assert counters.expected_alpha is not None
    assert least < counters.expected_alpha < 0.7
