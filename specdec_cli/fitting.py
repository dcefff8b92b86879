"""How many layers each device takes: from the bytes of the layers and the free memory of the devices, by arithmetic.

It knows of no model and no device.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final

SHARES: Final = 1 << 16
"""Into so many parts each room is divided, for finding the share of it that is enough."""


def fit_layers(layers: Sequence[int], room: Sequence[int]) -> tuple[int, ...]:
    """How many of `layers`, counted from the last, each device takes that has `room` bytes; the first ones stay out.

    As many as fit. Each device takes a run of them, in order, and about the same share of its room.
    """
    first = _earliest(layers, room)[0]
    enough = bisect_left(range(SHARES), True, key=lambda share: _earliest(layers, _part(room, share))[0] <= first)
    return _spread(layers, room, _part(room, enough))


def _part(room: Sequence[int], share: int) -> list[int]:
    return [free * share // SHARES for free in room]


def _earliest(layers: Sequence[int], room: Sequence[int]) -> list[int]:
    """Where each device's run starts if each takes all that it can hold, from the last; and where the last run ends."""
    starts = [len(layers)]
    for free in reversed(room):
        start = starts[-1]
        while start and layers[start - 1] <= free:
            start -= 1
            free -= layers[start]
        starts.append(start)
    return starts[::-1]


def _spread(layers: Sequence[int], room: Sequence[int], limits: Sequence[int]) -> tuple[int, ...]:
    """Runs within `limits`, each as near to the device's share of what is left as the devices behind it allow."""
    starts = _earliest(layers, limits)
    at, left, rooms = starts[0], sum(layers[starts[0] :]), [max(free, 0) for free in room]
    counts = []
    for index, limit in enumerate(limits):
        wanted = left * rooms[index] / max(sum(rooms[index:]), 1)
        end, load = at, 0
        while end < len(layers) and load + layers[end] <= limit:
            if end >= starts[index + 1] and load + layers[end] / 2 > wanted:
                break
            load += layers[end]
            end += 1
        counts.append(end - at)
        at, left = end, left - load
    return tuple(counts)


def fit_shares(layers: Sequence[int], room: Sequence[int], shares: Sequence[float]) -> tuple[int, ...]:
    """As `fit_layers`, where the devices take layers by their `shares` as llama.cpp divides them."""
    for count in range(len(layers), 0, -1):
        counts = spread(count, shares)
        ends = [len(layers) - count + sum(counts[:index]) for index in range(len(counts) + 1)]
        loads = [sum(layers[start:end]) for start, end in pairwise(ends)]
        if all(not load or load <= free for load, free in zip(loads, room, strict=True)):
            return counts
    return (0,) * len(room)


def spread(count: int, shares: Sequence[float]) -> tuple[int, ...]:
    """How many of `count` layers each device gets by its share of 0 or more, as llama.cpp's load_tensors counts them.

    A layer goes to the first device up to which the shares make more than the layers before it do.
    """
    whole = sum(shares) or 1
    ends = [end / whole for end in accumulate(shares)]
    places = [bisect_right(ends[:-1], layer / count) for layer in range(count)]
    return tuple(places.count(index) for index in range(len(shares)))
