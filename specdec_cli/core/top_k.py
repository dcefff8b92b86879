"""The k largest values of a row, exactly and without sorting the vocabulary.

The row is viewed as [rows, n / rows] and reduced to its column maxima. The k-th largest of those is not
above the k-th largest value, since k columns each hold one at least as large: only the few values that
reach it are sorted. Ties go to the lowest id.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import ROWS, Ids, Weights

Logits = npt.NDArray[np.float32]

COLUMNS_PER_CANDIDATE: Final = 4
"""With so many columns for each of the k, few values besides the k largest reach the bound."""


def top_k_ids(values: Weights, k: int) -> Ids:
    """Ids of the `k` largest of `values` [n], largest first, lowest id first among equals; all n if k ≥ n."""
    candidates = np.flatnonzero(values >= _floor(values, k)) if k < values.size else np.arange(values.size)
    order = np.argsort(-values[candidates], kind="stable")[:k]
    return candidates[order]


def _floor(values: Weights, k: int) -> float:
    """A value that at least `k` of `values` reach, close to the k-th largest."""
    rows = min(ROWS, values.size // (COLUMNS_PER_CANDIDATE * k))
    columns = values.size // max(rows, 1)
    maxima = values[: columns * rows].reshape(rows, columns).max(axis=0) if rows > 1 else values
    return float(np.partition(maxima, maxima.size - k)[maxima.size - k])
