"""What a target is asked: prompts of several kinds, one topic in ten kept to evaluate a draft on."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("prompts.toml")
HELD_OUT: Final = 10
"""Every so many-th topic is for evaluation alone."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question to a chat model, and the kind of answer that it asks for."""

    kind: str
    text: str


def training_prompts() -> list[str]:
    """Every topic but the held-out ones in every form, in the order of one shuffle."""
    return [each.text for each in _combined(held_out=False)]


def held_out_prompts() -> list[Prompt]:
    """The held-out topics in every form, in the order of one shuffle; forms are the same as in training."""
    return _combined(held_out=True)


def own_prompts(texts: Sequence[str]) -> list[str]:
    """The lines of `texts` that say something, one a prompt."""
    return [line for text in texts for line in text.splitlines() if line.strip()]


def _combined(*, held_out: bool) -> list[Prompt]:
    source = tomllib.loads(SOURCE.read_text("utf-8"))
    every = [
        Prompt(kind, form.format(topic))
        for number, topic in enumerate(source["topics"])
        if (number % HELD_OUT == HELD_OUT - 1) == held_out
        for kind, forms in source["forms"].items()
        for form in forms
    ]
    random.Random(0).shuffle(every)
    return every
