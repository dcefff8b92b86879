"""The k largest logits of a row, exactly and without sorting the vocabulary.

The row is viewed as [128, n] and reduced to its n column maxima. The k-th largest of those is not above
the k-th largest logit, since k columns each hold one at least as large: only the few logits that reach it
are sorted. Ties go to the lowest id.
"""

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import ROWS, Ids

Logits = npt.NDArray[np.float32]


def top_k_ids(logits: Logits, k: int) -> Ids:
    """Ids of the `k` largest of `logits` [n], largest first, lowest id first among equals; all n if k ≥ n."""
    candidates = np.flatnonzero(logits >= _floor(logits, k)) if k < logits.size else np.arange(logits.size)
    order = np.argsort(-logits[candidates], kind="stable")[:k]
    return candidates[order]


def _floor(logits: Logits, k: int) -> np.float32:
    """A value that at least `k` logits reach, close to the k-th largest."""
    columns = logits.size // ROWS
    values = logits[: columns * ROWS].reshape(ROWS, columns).max(axis=0) if k <= columns else logits
    floor: np.float32 = np.partition(values, values.size - k)[values.size - k]
    return floor
