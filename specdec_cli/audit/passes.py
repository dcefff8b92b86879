"""Evaluating a text from nothing, in passes of chosen sizes and without ever going back, and how far results differ.

llama.cpp rounds a quantised model differently in passes over one token and over several. How far is measured here,
on the user's own build: it is what a difference elsewhere is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from specdec_cli.core.top_k import Logits
from specdec_cli.llama.context import Context

SIZES: Final = (2, 3, 5, 9)
"""Passes that drafts of 1, 2, 4 and 8 tokens make."""
WORST: Final = 2.0
"""A `difference` between one pass and another that is no rounding any more: the build computes one of them wrongly."""


def evaluate(context: Context, prompt: Sequence[int], text: Sequence[int], sizes: Iterable[int]) -> list[Logits]:
    """Logits after the `prompt` and after each token of `text`, in passes of `sizes`, of which the last is repeated.

    The prompt but for its last token is evaluated as the engine does it. Rows are copies. What the cache held is gone.
    """
    context.rewind(0)
    context.extend(list(prompt[:-1]), rows=0)
    rest = [prompt[-1], *text]
    rows: list[Logits] = []
    size, coming = 1, iter(sizes)
    while rest:
        size = min(next(coming, size), context.options.rows)
        batch, rest = rest[:size], rest[size:]
        rows += [row.copy() for row in context.extend(batch, rows=len(batch))]
    return rows


def difference(one: Logits, other: Logits) -> float:
    """How far two rows of logits are apart: root mean square, a shift of all of them left out as it means nothing."""
    with np.errstate(invalid="ignore"):
        apart = one.astype(np.float64) - other
    apart = apart[np.isfinite(apart)]
    return float(np.std(apart)) if apart.size else 0.0


def rounding(context: Context, prompt: Sequence[int], text: Sequence[int]) -> float:
    """The largest `difference` that passes of `SIZES` make to those over single tokens, anywhere in `text`."""
    alone = evaluate(context, prompt, text, (1,))
    return max(
        difference(one, other)
        for size in SIZES
        for one, other in zip(alone, evaluate(context, prompt, text, (size,)), strict=True)
    )
