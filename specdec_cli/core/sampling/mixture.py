"""A distribution made of two: what a sampler that strikes only now and then amounts to."""

from __future__ import annotations

import numpy as np

from specdec_cli.core.distribution import Distribution


def mixture(share: float, first: Distribution, second: Distribution) -> Distribution:
    """`share` · first + (1 - share) · second."""
    parts = [(first, share / first.total), (second, (1 - share) / second.total)]
    if first.ids is not None and second.ids is not None:
        ids, places = np.unique(np.concatenate([first.ids, second.ids]), return_inverse=True)
        chances = np.concatenate([part.weights * factor for part, factor in parts])
        weights = np.zeros(ids.size)
        np.add.at(weights, places, chances)
        return Distribution.of(weights, ids)
    row = np.zeros(max(part.weights.size for part, _ in parts if part.ids is None), np.float32)
    for part, factor in parts:
        row[slice(None) if part.ids is None else part.ids] += part.weights * factor
    return Distribution.of(row)
