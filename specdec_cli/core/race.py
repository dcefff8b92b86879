"""A race of all tokens, each with its own noise: the coupled rule's way to draw.

Token x has noise E(x), exponential with mean 1, and the one with the largest p(x) / E(x) wins: it has the law
p (Efraimidis and Spirakis 2006; with G = -log E this is the Gumbel-max trick). E does not depend on p, so
two similar distributions that race with the same noise mostly have the same winner (Daliri, Musco and Suresh
2024, "Coupling without Communication and Drafter-Invariant Speculative Decoding").

Nearly all of E is never worked out. Ids are grouped into blocks of `DEPTH`. The smallest of `DEPTH` exponentials
is exponential with mean 1 / `DEPTH` and equally likely to be any of them; as exponentials have no memory, the
others exceed it by exponentials of mean 1. So a block's minimum and its owner come first, from one hash, and the
rest of the block only if the bound of the block, (largest p in it) / (its minimum), reaches the best score
found. The law is exactly that of independent noise, and no token that could win is left out.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import Distribution, Ids, Weights

WIDTH: Final = 256
DEPTH: Final = 64
"""Id x is in block (x // (WIDTH · DEPTH)) · WIDTH + x % WIDTH, whatever the size of the vocabulary."""

FIRST_OPENED: Final = 16
"""Blocks that are opened first, those of the best bounds; there are never fewer than `WIDTH`."""

Key = tuple[int, int]
"""Two numbers of 64 bits that no other race shares."""
Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint64]


def winner(p: Distribution, key: Key) -> int:
    """The token of `p` that wins the race of `key`."""
    if p.ids is None:
        return _dense_winner(p.weights, key)
    return int(p.ids[(p.weights / noise(p.ids, key)).argmax()])


def noise(ids: Ids, key: Key) -> Floats:
    """E(x) of each of `ids` (of any shape)."""
    least, owners = _blocks((ids // (WIDTH * DEPTH)) * WIDTH + ids % WIDTH, key)
    own = -np.log(_uniforms(_hash(ids, key[1])))
    return np.where(ids // WIDTH % DEPTH == owners, least, least + own)


def _blocks(blocks: Ids, key: Key) -> tuple[Floats, Bits]:
    """The smallest noise in each of `blocks`, and which of its `DEPTH` tokens has it."""
    bits = _hash(blocks, key[0])
    return np.log(_uniforms(bits)) / -DEPTH, bits % np.uint64(DEPTH)


def _dense_winner(weights: Weights, key: Key) -> int:
    largest = _block_maxima(weights)
    bounds = largest / _blocks(np.arange(largest.size), key)[0]
    opened = np.argpartition(bounds, bounds.size - FIRST_OPENED)[bounds.size - FIRST_OPENED :]
    token, score = _best_inside(opened, weights, key)
    reached = np.flatnonzero(bounds >= score)
    return token if reached.size <= FIRST_OPENED else _best_inside(reached, weights, key)[0]


def _block_maxima(weights: Weights) -> Weights:
    """The largest weight in each block, [blocks]; 0 for one without ids."""
    rows = -(-weights.size // WIDTH)
    whole = weights.size // WIDTH
    maxima = np.zeros((-(-rows // DEPTH), WIDTH), weights.dtype)
    for index in range(len(maxima)):
        part = weights[index * DEPTH * WIDTH : min((index + 1) * DEPTH, whole) * WIDTH].reshape(-1, WIDTH)
        part.max(axis=0, initial=0, out=maxima[index])
    rest = weights[whole * WIDTH :]
    np.maximum(maxima[-1, : rest.size], rest, out=maxima[-1, : rest.size])
    return maxima.ravel()


def _best_inside(blocks: Ids, weights: Weights, key: Key) -> tuple[int, float]:
    """The token of the best score in `blocks`, and its score."""
    first = blocks // WIDTH * (WIDTH * DEPTH) + blocks % WIDTH
    ids = (first[:, np.newaxis] + np.arange(0, WIDTH * DEPTH, WIDTH)).ravel()
    ids = ids[ids < weights.size]
    scores = weights[ids] / noise(ids, key)
    best = int(scores.argmax())
    return int(ids[best]), float(scores[best])


def _uniforms(bits: Bits) -> Floats:
    """Numbers in (0, 1) from the upper 52 of 64 `bits`, never 0 or 1; the lower ones are free for another use."""
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _hash(counters: Ids, key: int) -> Bits:
    """64 bits for each counter: SplitMix64 (Steele, Lea and Flood 2014) from state `key`, any step of it at once."""
    state = counters.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return state
