"""DRY against its plain form, and at its edges; against llama.cpp's see `test_oracle`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from specdec_cli.core.sampling.dry import Breakers, dry_penalties
from tests.core.sampling.random_chains import OFF
from tests.core.sampling.reference_penalties import do_not_repeat


def penalties(
    tokens: Sequence[int], *, base: float = 2, allowed: int = 2, breakers: Breakers | None = None
) -> dict[int, float]:
    return dry_penalties(tokens, multiplier=1, base=base, allowed=allowed, breakers=breakers or {})


def test_what_would_go_on_with_a_repetition_costs_more_the_longer_it_is() -> None:
    #        a  b  c  c  b  c  y  a  b  c
    tokens = [1, 2, 3, 3, 2, 3, 9, 1, 2, 3]
    assert penalties(tokens) == {3: 2.0, 9: 1.0}
    assert penalties(tokens, allowed=1) == {3: 4.0, 2: 1.0, 9: 2.0}
    assert penalties(tokens, allowed=3) == {3: 1.0}
    assert penalties(tokens, allowed=4) == {}


def test_no_repetition_reaches_across_a_breaker() -> None:
    tokens = [1, 2, 3, 4, 5, 1, 2, 3]
    assert penalties(tokens) == {4: 2.0}
    assert penalties(tokens, breakers={1: ((),)}) == {4: 1.0}
    assert penalties(tokens, breakers={2: ((),)}) == {}


def test_a_breaker_of_several_tokens_must_be_there_whole() -> None:
    tokens = [1, 2, 3, 4, 5, 1, 2, 3]
    assert penalties(tokens, breakers={1: ((2, 3),)}) == {}
    assert penalties(tokens, breakers={1: ((2, 4),)}) == {4: 2.0}
    assert penalties(tokens, breakers={5: ((1,),), 1: ((9,),)}) == {4: 1.0}
    assert penalties(tokens, breakers={1: ((), (2,))}) == {}, "of two at the same place the longer counts"
    assert penalties(tokens, breakers={3: ((4, 5),)}) == {4: 2.0}, "the last one lies before the repetition"


def test_a_breaker_of_one_token_is_never_penalised() -> None:
    tokens = [1, 2, 3, 4, 1, 2, 3]
    assert penalties(tokens) == {4: 2.0}
    assert penalties(tokens, breakers={4: ((),)}) == {}
    assert penalties(tokens, breakers={4: ((5,),)}) == {4: 2.0}


@pytest.mark.parametrize("tokens", [[], [1], [1, 1], [1, 2]])
def test_too_short_a_past_repeats_nothing(tokens: list[int]) -> None:
    assert penalties(tokens) == {}


def test_an_allowed_length_of_zero_penalises_every_token_that_followed_another() -> None:
    assert penalties([1, 2, 3], allowed=0) == {2: 1.0, 3: 1.0}
    assert penalties([1, 2, 3], allowed=0, breakers={3: ((),)}) == {2: 1.0}


@pytest.mark.parametrize(("base", "exponent"), [(1.75, 158), (2, 127), (100, 19), (1.1, 930)])
def test_the_penalty_stops_growing_before_float32_ends(base: float, exponent: int) -> None:
    assert penalties([1] * 2000, base=base)[1] == base**exponent < 3.5e38


def test_a_base_of_one_is_the_same_penalty_for_any_length() -> None:
    assert penalties([1] * 3000, base=1) == {1: 1.0}


def test_any_text_agrees_with_the_plain_form() -> None:
    for seed in range(600):
        rng = np.random.default_rng([seed, 3])
        size = int(rng.choice([1, 2, 3, 6]))
        history = rng.integers(0, size, rng.integers(0, 140)).tolist()
        if seed % 3 == 0:
            history = (history[:5] * 60)[: len(history)]
        breakers = {int(rng.integers(0, size)): (tuple(rng.integers(0, size, rng.integers(0, 3)).tolist()),)}
        chain = replace(
            OFF,
            dry_multiplier=0.5,
            dry_base=float(rng.choice([1, 1.3, 1.75, 60])),
            dry_allowed_length=int(rng.integers(0, 5)),
            dry_penalty_last_n=200,
            dry_breakers=breakers if seed % 2 else {},
        )
        told = dry_penalties(
            history,
            multiplier=chain.dry_multiplier,
            base=chain.dry_base,
            allowed=chain.dry_allowed_length,
            breakers=chain.dry_breakers,
        )
        plain = do_not_repeat(dict.fromkeys(range(size), 0.0), chain, history)
        expected = {token: -logit for token, logit in plain.items() if logit}
        assert told == pytest.approx(expected, rel=1e-6), "float32 is how the plain form keeps logits"
