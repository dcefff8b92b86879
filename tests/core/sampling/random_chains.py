"""Random rows, histories and options, for tests that compare two ways of working out the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.order import DEFAULT_ORDER
from specdec_cli.core.top_k import Logits

OFF: Final = SamplingChain(temperature=1, top_k=0, top_p=1, min_p=0)


@dataclass(frozen=True, slots=True)
class Case:
    chain: SamplingChain
    row: Logits
    history: tuple[int, ...]


def random_row(rng: np.random.Generator, size: int) -> Logits:
    row: Logits = rng.normal(rng.choice([-5, 0, 8]), rng.choice([0.5, 2, 4]), size).astype(np.float32)
    row.flags.writeable = False
    return row


def random_history(rng: np.random.Generator, size: int) -> tuple[int, ...]:
    """Few different tokens, so that much is said twice; some of them likely to be among the best."""
    words = rng.integers(0, size, rng.integers(1, 8))
    return tuple(rng.choice(words, rng.integers(0, 100)).tolist())


def random_options(rng: np.random.Generator, name: str) -> dict[str, Any]:
    """Options that switch the sampler `name` on."""
    drawn: dict[str, dict[str, Any]] = {
        "penalties": {
            "repeat_penalty": rng.choice([0.8, 1, 1.1, 1.5]),
            "presence_penalty": rng.choice([-0.5, 0, 1]),
            "frequency_penalty": rng.choice([0, 0.3]),
            "repeat_last_n": rng.choice([1, 20, 64, 200]),
        },
        "dry": {
            "dry_multiplier": rng.choice([0.3, 0.8, 2]),
            "dry_base": rng.choice([1, 1.1, 1.75, 30]),
            "dry_allowed_length": rng.choice([0, 1, 2, 5]),
            "dry_penalty_last_n": rng.choice([3, 30, 64, 200]),
        },
        "top_n_sigma": {"top_n_sigma": rng.uniform(0.2, 3)},
        "top_k": {"top_k": rng.choice([2, 5, 40, 300, 5000])},
        "typ_p": {"typical_p": rng.uniform(0.05, 0.99)},
        "top_p": {"top_p": rng.uniform(0.05, 0.999)},
        "min_p": {"min_p": rng.choice([0.001, 0.05, 0.3])},
        "xtc": {"xtc_probability": rng.choice([0.2, 0.5, 1]), "xtc_threshold": rng.choice([0.01, 0.1, 0.3])},
        "temperature": {"temperature": rng.choice([0, 0.5, 0.8, 1.7])},
    }
    return {option: value.item() if hasattr(value, "item") else value for option, value in drawn[name].items()}


def random_chain(rng: np.random.Generator, size: int, *, shuffled: bool) -> SamplingChain:
    """About half of the samplers on, in llama.cpp's order or in any; some logits biased."""
    chain = OFF
    for name in DEFAULT_ORDER:
        if rng.random() < 0.5:
            chain = replace(chain, **random_options(rng, name))
    if rng.random() < 0.3:
        tokens = rng.integers(0, size + 5, 4).tolist()
        chain = replace(chain, logit_bias=tuple(zip(tokens, [5.0, -3.0, float("-inf"), 0.5], strict=True)))
    order = list(DEFAULT_ORDER)
    if shuffled:
        rng.shuffle(order)
        order = order[: rng.integers(3, len(order) + 1)]
    return replace(chain, samplers=tuple(order))


def random_case(seed: int, *, shuffled: bool, size: int | None = None) -> Case:
    rng = np.random.default_rng([seed, shuffled])
    size = size or int(rng.choice([50, 200, 700, 3000], p=[0.4, 0.3, 0.2, 0.1]))
    history = random_history(rng, size)
    return Case(random_chain(rng, size, shuffled=shuffled), random_row(rng, size), history)
