"""Every option has a range, and a message that tells it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.errors import UsageError


@pytest.mark.parametrize(
    ("option", "limits", "values"),
    [
        ("temperature", "0..100", [-1, -1e-9, 100.1, math.nan, math.inf]),
        ("top_k", "below 0", [-1]),
        ("top_p", "0..1", [-0.1, 1.5, math.nan]),
        ("min_p", "0..1", [-0.1, 1.5, math.nan]),
        ("typical_p", "0..1", [-0.1, 1.5, math.nan]),
        ("top_n_sigma", "0..100", [-1, 101, math.nan]),
        ("xtc_probability", "0..1", [-0.1, 1.5, math.nan]),
        ("xtc_threshold", "0..1", [-0.1, 1.5, math.nan]),
        ("repeat_last_n", "below 0", [-1]),
        ("repeat_penalty", "0.01..100", [0, -1, 101, math.inf, math.nan]),
        ("presence_penalty", "-100..100", [-101, 101, math.nan]),
        ("frequency_penalty", "-100..100", [-101, 101, math.nan]),
        ("dry_multiplier", "0..100", [-1, 101, math.nan]),
        ("dry_base", "1..100", [0, 0.5, 101, math.nan]),
        ("dry_allowed_length", "below 0", [-1]),
        ("dry_penalty_last_n", "below 0", [-1]),
    ],
)
def test_a_value_outside_its_range_names_option_and_range(option: str, limits: str, values: list[float]) -> None:
    for value in values:
        with pytest.raises(UsageError) as caught:
            SamplingChain(**{option: value})  # type: ignore[arg-type]
        assert f"--{option.replace('_', '-')} {value:g} " in caught.value.message
        assert limits in caught.value.message


@pytest.mark.parametrize("bias", [math.nan, math.inf, 10001, -10001])
def test_a_bias_outside_its_range_names_token_and_range(bias: float) -> None:
    with pytest.raises(UsageError, match=r"--logit-bias 5=\S+ is not in -10000..10000"):
        SamplingChain(logit_bias=((5, bias),))


def test_a_bias_of_a_negative_token_is_refused() -> None:
    with pytest.raises(UsageError, match="token -1"):
        SamplingChain(logit_bias=((-1, 1.0),))


@pytest.mark.parametrize("value", [0, 100])
def test_the_ends_of_the_temperature_range_are_inside(value: float) -> None:
    assert SamplingChain(temperature=value).distribution(np.arange(5, dtype=np.float32)).total > 0
