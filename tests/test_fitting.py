"""Layers on devices, against all ways to place them, and against llama.cpp's rule for placing what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest

from specdec_cli.fitting import fit_layers, fit_shares, spread

GIGABYTE = 10**9
ROUGHLY = Fraction(1, 1 << 16)
"""A share that is no matter."""


def loads(layers: Sequence[int], counts: Sequence[int]) -> list[int]:
    """The bytes that each device holds."""
    ends = [len(layers) - sum(counts[index + 1 :]) for index in range(len(counts))]
    return [sum(layers[end - count : end]) for end, count in zip(ends, counts, strict=True)]


def highest_share(layers: Sequence[int], room: Sequence[int], counts: Sequence[int]) -> Fraction | None:
    """The share of the most loaded device; None if one does not hold what it should."""
    shares = [Fraction(0)]
    for load, free, count in zip(loads(layers, counts), room, counts, strict=True):
        if count and load > free:
            return None
        if load:
            shares.append(Fraction(load, free))
    return max(shares)


def best(layers: Sequence[int], room: Sequence[int]) -> tuple[int, Fraction]:
    """The most layers that fit, and the smallest share of the most loaded device for these: all ways are tried."""
    found = []
    for counts in product(range(len(layers) + 1), repeat=len(room)):
        if sum(counts) <= len(layers) and (share := highest_share(layers, room, counts)) is not None:
            found.append((-sum(counts), share))
    total, share = min(found)
    return -total, share


def test_as_many_fit_as_in_the_best_of_all_ways_and_the_most_loaded_device_has_no_more() -> None:
    random = Random(1)
    for _ in range(600):
        layers = [random.randint(1, random.choice([3, 40])) for _ in range(random.randint(1, 6))]
        room = [random.randint(-5, 90) for _ in range(random.randint(0, 4))]
        counts = fit_layers(layers, room)
        share, (total, smallest) = highest_share(layers, room, counts), best(layers, room)
        assert len(counts) == len(room)
        assert sum(counts) == total
        assert share is not None
        assert share <= smallest + ROUGHLY


@pytest.mark.parametrize(
    ("layers", "room", "counts"),
    [
        ([1] * 10, [100], (10,)),
        ([1] * 10, [7], (7,)),
        ([9, 1, 1, 5], [7], (3,)),
        ([1] * 32, [24, 24, 8], (14, 14, 4)),
        ([2] * 12, [300, 600], (4, 8)),
        ([2] * 12, [8, 600], (0, 12)),
        ([1, 1, 1, 9], [20, 18], (3, 1)),
        ([1] * 6, [10, 0, -3, 10], (3, 0, 0, 3)),
        ([4] * 3, [3, 3], (0, 0)),
        ([1] * 4, [10, 10, -19, 10], (1, 2, 0, 1)),
        ([1], [5, 5], (1, 0)),
        ([], [5], (0,)),
        ([1] * 3, [], ()),
    ],
)
def test_devices_take_like_shares_of_their_room(layers: list[int], room: list[int], counts: tuple[int, ...]) -> None:
    assert fit_layers(layers, room) == counts


def test_no_device_is_spared_where_all_are_alike() -> None:
    for devices in range(1, 9):
        for total in range(1, 40):
            counts = fit_layers([GIGABYTE] * total, [40 * GIGABYTE] * devices)
            assert sum(counts) == total
            assert max(counts) - min(counts) <= 1


def test_a_big_model_on_many_devices_is_not_tried_in_all_ways() -> None:
    random = Random(2)
    layers = [random.randint(GIGABYTE, 2 * GIGABYTE) for _ in range(130)]
    counts = fit_layers(layers, [random.randint(26 * GIGABYTE, 32 * GIGABYTE) for _ in range(8)])
    assert sum(counts) == 130
    assert min(counts) >= 13


def placed(split: Sequence[float], layers: int) -> list[int]:
    """How many of `layers` each device gets from llama.cpp, all of them offloaded, by the rule of its load_tensors."""
    points = np.cumsum(np.array(split, np.float32), dtype=np.float32)
    points /= points[-1]
    counts = [0] * len(split)
    for layer in range(layers):
        counts[int(np.searchsorted(points, np.float32(layer) / np.float32(layers), side="right"))] += 1
    return counts


def test_llama_cpp_puts_exactly_these_counts_on_the_devices() -> None:
    random = Random(3)
    for total in range(1, 514):
        cuts = sorted(random.randint(0, total) for _ in range(random.randint(0, 7)))
        split = [end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True)]
        assert placed(split, total) == split


def test_shares_divide_layers_as_llama_cpp_does() -> None:
    random = Random(4)
    for total in range(1, 200):
        shares = [random.choice([0.0, random.random(), 3.0]) for _ in range(random.randint(0, 6))] + [random.random()]
        assert list(spread(total, shares)) == placed(shares, total)


@pytest.mark.parametrize(("count", "shares", "counts"), [(0, [1, 1], (0, 0)), (0, [0], (0,)), (2, [0], (2,))])
def test_nothing_to_divide_and_no_shares_are_no_trouble(
    count: int, shares: list[float], counts: tuple[int, ...]
) -> None:
    assert spread(count, shares) == counts


def test_with_shares_given_as_many_layers_are_taken_as_leave_each_device_within_its_room() -> None:
    random = Random(5)
    for _ in range(200):
        layers = [random.randint(1, 40) for _ in range(random.randint(1, 12))]
        room = [random.randint(-5, 200) for _ in range(random.randint(1, 4))]
        shares = [random.randint(1, 5) for _ in room]
        counts = fit_shares(layers, room, shares)
        ways = [spread(count, shares) for count in range(len(layers) + 1)]
        fitting = [way for way in ways if highest_share(layers, room, way) is not None]
        assert counts == fitting[-1]
