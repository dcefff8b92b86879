"""The ranges of the sampling options."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from specdec_cli.errors import UsageError

if TYPE_CHECKING:
    from specdec_cli.core.sampling.chain import SamplingChain

RANGES: Final[dict[str, tuple[float, float, str]]] = {
    "temperature": (0, 100, "0 is greedy"),
    "top_p": (0, 1, "1 switches the filter off"),
    "min_p": (0, 1, "0 switches the filter off"),
    "typical_p": (0, 1, "1 switches the filter off"),
    "top_n_sigma": (0, 100, "0 switches the filter off"),
    "xtc_probability": (0, 1, "0 switches XTC off"),
    "xtc_threshold": (0, 1, "above 0.5 switches XTC off"),
    "repeat_penalty": (0.01, 100, "1 switches it off"),
    "presence_penalty": (-100, 100, "0 switches it off"),
    "frequency_penalty": (-100, 100, "0 switches it off"),
    "dry_multiplier": (0, 100, "0 switches DRY off"),
    "dry_base": (1, 100, "each token that a repetition is longer makes the penalty so many times larger"),
}
"""Lowest and highest value of each number, and a hint."""

COUNTS: Final = {
    "top_k": "0 switches the filter off",
    "repeat_last_n": "0 switches the penalties off",
    "dry_allowed_length": "repetitions of so many tokens may still go on",
    "dry_penalty_last_n": "0 switches DRY off",
}
"""What is counted in tokens, and a hint."""

LARGEST_BIAS: Final = 10_000


def check_ranges(chain: SamplingChain) -> None:
    """Raises UsageError, with the range, for the first option of `chain` that is outside it."""
    for name, (low, high, hint) in RANGES.items():
        value = getattr(chain, name)
        if not low <= value <= high:
            raise UsageError(f"{_option(name)} {value:g} is not in {low:g}..{high:g}", hint=hint)
    for name, hint in COUNTS.items():
        if (count := getattr(chain, name)) < 0:
            raise UsageError(f"{_option(name)} {count} is below 0", hint=hint)
    for token, bias in chain.logit_bias:
        if token < 0:
            raise UsageError(f"--logit-bias names the token {token}", hint="the first token is 0")
        if not (abs(bias) <= LARGEST_BIAS or bias == -math.inf):
            limits = f"-{LARGEST_BIAS}..{LARGEST_BIAS}"
            raise UsageError(f"--logit-bias {token}={bias:g} is not in {limits}", hint="-inf bans a token")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
