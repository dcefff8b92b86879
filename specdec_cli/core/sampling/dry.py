"""DRY: "don't repeat yourself". A token that would go on with something said before is made less likely.

The longer the repetition that it would continue, the larger the penalty: multiplier · base^(length - allowed).
Breakers, such as a line's end, are sequences of tokens that no repetition reaches across. Which tokens are
penalised and by how much is the same as in llama.cpp's sampler "dry" (src/llama-sampler.cpp). Invented by
p-e-w: https://github.com/oobabooga/text-generation-webui/pull/5677.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from specdec_cli.core.distribution import Ids

Breakers = Mapping[int, tuple[tuple[int, ...], ...]]
"""The first token of each breaker -> what must follow it, () where the token is a breaker by itself."""

LOG_OF_LARGEST: Final = 88.7228391
"""base^exponent stops growing where float32 would end."""
LEAST_GROWING_BASE: Final = 1.000001
"""Up to this base the exponent has no bound, as it needs none."""

FIRST_LOOK: Final = 16
LONGEST_LOOK: Final = 256
"""How many tokens of the possible repetitions are compared at a time: twice as many each time, up to a bound."""

NO_TOKEN: Final = -1


def dry_penalties(
    tokens: Sequence[int], *, multiplier: float, base: float, allowed: int, breakers: Breakers
) -> dict[int, float]:
    """What to take off the logit of each token that would make the end of `tokens`, said before, longer.

    `allowed` is the length of a repetition that is still free to go on with the least penalty, multiplier.
    """
    if len(tokens) <= allowed:
        return {}
    reversed_tokens = np.array(tokens[::-1], np.int32)
    limit = min(_since_breaker(tokens, breakers), allowed + _largest_exponent(base))
    lengths = _match_lengths(reversed_tokens, limit)
    repeated = np.flatnonzero(lengths >= allowed)
    shortest_first = repeated[np.argsort(lengths[repeated], kind="stable")]
    longest = dict(zip(reversed_tokens[shortest_first].tolist(), lengths[shortest_first].tolist(), strict=True))
    return {
        token: multiplier * base ** (length - allowed)
        for token, length in longest.items()
        if () not in breakers.get(token, ())
    }


def _largest_exponent(base: float) -> int:
    return int(LOG_OF_LARGEST / math.log(base)) if base > LEAST_GROWING_BASE else 1 << 30


def _since_breaker(tokens: Sequence[int], breakers: Breakers) -> int:
    """How many tokens follow the last breaker; all of them without one."""
    for since, token in enumerate(reversed(tokens)):
        if token in breakers:
            after = tuple(tokens[len(tokens) - since :])
            found = [len(tail) for tail in breakers[token] if after[: len(tail)] == tail]
            if found:
                return since - max(found)
    return len(tokens)


def _match_lengths(backwards: npt.NDArray[np.int32], limit: int) -> Ids:
    """For k = 1..n-1: how many tokens from place k on are those from place 0 on, counted up to `limit` ≥ 0."""
    count = backwards.size
    padded = np.concatenate([backwards, np.full(LONGEST_LOOK, NO_TOKEN, np.int32)])
    lengths = np.zeros(count - 1, np.intp)
    places = np.flatnonzero(backwards[1:] == backwards[0]) + 1
    width, depth = FIRST_LOOK, 0
    while places.size and depth < limit:
        windows = as_strided(padded, (backwards.size + 1, width), padded.strides * 2, writeable=False)
        same = windows[places + depth] == windows[depth]
        whole = same.all(axis=1)
        lengths[places - 1] += np.where(whole, width, same.argmin(axis=1))
        places = places[whole]
        depth, width = depth + width, min(2 * width, LONGEST_LOOK)
    return np.minimum(lengths, limit)
