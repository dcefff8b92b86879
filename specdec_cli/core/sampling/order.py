"""The samplers by name: llama.cpp's names and order, and the ways that people write them. Imports no numpy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from specdec_cli.errors import UsageError

DEFAULT_ORDER: Final = (
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
)
"""The order in which samplers act on the logits, unless the user says otherwise (llama.cpp, common/common.h)."""

_OTHER_NAMES: Final = {"nucleus": "top_p", "temp": "temperature", "typ": "typ_p"}
_SPELLINGS: Final = {
    **{spelling: name for name in DEFAULT_ORDER for spelling in (name, name.replace("_", "-"), name.replace("_", ""))},
    **_OTHER_NAMES,
}


def to_samplers(text: str) -> tuple[str, ...]:
    """The samplers that `text` names, separated by ; or , in any case; empty for none at all.

    Raises:
        UsageError: a name is unknown or comes twice.
    """
    words = [word.strip().lower() for word in re.split("[;,]", text)] if text.strip() else []
    samplers = tuple(_SPELLINGS.get(word, word) for word in words)
    check_samplers(samplers)
    return samplers


def check_samplers(samplers: Sequence[str]) -> None:
    """Raises UsageError for a name that is unknown or comes twice."""
    for at, name in enumerate(samplers):
        if name not in DEFAULT_ORDER:
            raise UsageError(f'no sampler is named "{name}"', hint=f"there are {', '.join(DEFAULT_ORDER)}")
        if name in samplers[:at]:
            raise UsageError(f"the sampler {name} is named twice", hint="each acts once, in the order that you give")
