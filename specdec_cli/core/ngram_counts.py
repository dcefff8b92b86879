"""Making tables of n-grams: counting, merging, and leaving out what is rare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from specdec_cli.core.ngrams import UNIT, Keys, Level, NgramTable, to_keys

NOTHING: Final = -1
"""In a window, in place of tokens before the text begins."""
NO_LEVEL: Final = Level(np.zeros(0, np.int64), np.zeros(0, np.uint32))
MOST: Final = np.iinfo(np.uint32).max


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """What was seen: `windows` [m, order], each a token behind those before it, and what each counts, `weights` [m].

    Where a token is seen, every window that begins with it needs it seen, if only with weight 0.
    """

    windows: Keys
    weights: npt.NDArray[np.float64]


def observe(text: Sequence[int], order: int, *, start: int = 0) -> Observations:
    """All of `text` [m], m > 0, behind what comes before it; the first `start` tokens are context and count nothing."""
    padded = np.concatenate([np.full(order - 1, NOTHING, np.int64), np.asarray(text, np.int64)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, order)
    return Observations(windows, (np.arange(len(windows)) >= start).astype(np.float64))


def joined(observations: Sequence[Observations]) -> Observations:
    """All of them."""
    windows = np.concatenate([each.windows for each in observations])
    return Observations(windows, np.concatenate([each.weights for each in observations]))


def count(seen: Observations, vocabulary: int) -> NgramTable:
    """The table of what was seen."""
    levels: list[Level] = []
    order = seen.windows.shape[1]
    for length in range(1, order + 1):
        windows = seen.windows[:, order - length :]
        whole = windows[:, 0] != NOTHING
        windows, weights = windows[whole], seen.weights[whole]
        parents = np.zeros(len(windows), np.int64)
        for level, tokens in zip(levels, windows.T, strict=False):
            parents = level.find(parents, tokens)
        levels.append(_level(to_keys(parents, windows[:, -1]), weights * UNIT))
    return NgramTable(vocabulary, tuple(levels))


def merge(one: NgramTable, other: NgramTable) -> NgramTable:
    """The table of all that two tables of one vocabulary saw, of the longer order."""
    levels: list[Level] = []
    roots = np.zeros(1, np.int64)
    places = (roots, roots)
    for ours, theirs in zip_longest(one.levels, other.levels, fillvalue=NO_LEVEL):
        moved = [
            to_keys(place[level.parents], level.tokens) for place, level in zip(places, (ours, theirs), strict=True)
        ]
        level = _level(np.concatenate(moved), np.concatenate([ours.counts, theirs.counts]).astype(np.float64))
        places = (np.searchsorted(level.keys, moved[0]), np.searchsorted(level.keys, moved[1]))
        levels.append(level)
    return NgramTable(max(one.vocabulary, other.vocabulary), tuple(levels))


def pruned(table: NgramTable, least: float) -> NgramTable:
    """`table` without n-grams that were counted less than `least` times, unless longer ones that stay go on from them.

    Single tokens stay. What goes is no loss of probability: shorter contexts give those tokens what they have.
    """
    kept: list[npt.NDArray[np.bool_]] = []
    needed = np.zeros(0, np.int64)
    for length in range(table.order, 0, -1):
        level = table.levels[length - 1]
        keep = level.counts >= least * UNIT if length > 1 else np.ones(len(level.keys), bool)
        keep[needed] = True
        needed = np.unique(level.parents[keep]) if length > 1 else needed
        kept.insert(0, keep)
    levels: list[Level] = []
    moved = np.zeros(1, np.int64)
    for level, keep in zip(table.levels, kept, strict=True):
        levels.append(Level(to_keys(moved[level.parents[keep]], level.tokens[keep]), level.counts[keep]))
        moved = np.cumsum(keep) - 1
    return NgramTable(table.vocabulary, tuple(levels))


def _level(keys: Keys, counts: npt.NDArray[np.float64]) -> Level:
    unique, place = np.unique(keys, return_inverse=True)
    sums: npt.NDArray[Any] = np.bincount(place, weights=counts, minlength=len(unique))
    return Level(unique, np.minimum(np.rint(sums), MOST).astype(np.uint32))
