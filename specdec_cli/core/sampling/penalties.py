"""What changes single logits: the user's bias, and the penalties on tokens that were said lately.

A logit is changed for what its own token is, whatever the others are; so these commute with a grammar's mask.
Semantics are those of llama.cpp's samplers "logit-bias" and "penalties" (src/llama-sampler.cpp).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import Ids
from specdec_cli.core.sampling.candidates import Candidates
from specdec_cli.core.top_k import Logits

Values = npt.NDArray[np.float64]

LARGEST: Final = float(np.finfo(np.float32).max)
"""What has been changed stays a number of float32, however large the penalty."""


def biased(logits: Logits, tokens: Ids, bias: Values) -> Logits:
    """A copy of `logits` [vocabulary] with `bias` [m] added to `tokens` [m]; -inf bans one whatever its logit."""
    known = tokens < logits.size
    tokens, bias = tokens[known], bias[known]
    row = logits.copy()
    old = row[tokens].astype(np.float64)
    with np.errstate(invalid="ignore"):
        moved = np.where(np.isinf(old), old, np.clip(old + bias, -LARGEST, LARGEST))
    row[tokens] = np.where(bias == -np.inf, bias, moved)
    return row


def penalised(
    candidates: Candidates, tokens: Sequence[int], *, repeat: float, presence: float, frequency: float
) -> Candidates:
    """Each of the last `tokens` made less likely.

    Its logit is divided by `repeat` if positive, else multiplied; then `presence` is taken off, and
    `frequency` for each time that it occurs.
    """
    counts = Counter(tokens)
    times = np.fromiter(counts.values(), np.float64, len(counts))

    def change(logits: Values, which: npt.NDArray[np.bool_]) -> Values:
        repelled = np.where(logits > 0, logits / repeat, logits * repeat)
        return repelled - (times[which] * frequency + presence)

    return changed(candidates, counts, change)


def lowered(candidates: Candidates, penalties: Mapping[int, float]) -> Candidates:
    """With `penalties` taken off the logits of their tokens."""
    amounts = np.fromiter(penalties.values(), np.float64, len(penalties))
    return changed(candidates, penalties, lambda logits, which: logits - amounts[which])


def changed(
    candidates: Candidates, tokens: Collection[int], change: Callable[[Values, npt.NDArray[np.bool_]], Values]
) -> Candidates:
    """With the logits of those of `tokens` [m] that are here as `change` makes them.

    `change` gets logits at the temperature so far, and which [m] of the tokens they belong to.
    """
    ordered = candidates.by_id()
    positions, which = ordered.find(np.fromiter(tokens, np.intp, len(tokens)))
    if positions.size == 0:
        return candidates
    logits = ordered.logits.copy()
    old = logits[positions].astype(np.float64)
    with np.errstate(invalid="ignore"):
        new = np.clip(change(old / ordered.scale, which) * ordered.scale, -LARGEST, LARGEST)
    logits[positions] = np.where(old > -np.inf, new, old)
    return ordered.with_logits(logits)
