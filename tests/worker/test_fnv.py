"""The hash of ggml's tensor cache against the obvious loop and against its published values."""

from __future__ import annotations

import io

import numpy as np
import pytest

from specdec_cli.worker.fnv import BLOCK, MODULUS, OFFSET, PRIME, STEPS, fnv1a


def obvious(content: bytes) -> int:
    state = OFFSET
    for byte in content:
        state = (state ^ byte) * PRIME % MODULUS
    return state


def random_bytes(count: int, seed: int = 3) -> bytes:
    return np.random.default_rng(seed).bytes(count)


class Trickle(io.BytesIO):
    """A file that hands out less than it is asked for, as a pipe may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 0, 100_001))


@pytest.mark.parametrize(
    ("text", "value"), [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)]
)
def test_the_published_values_come_out(text: bytes, value: int) -> None:
    assert fnv1a(io.BytesIO(text)) == value


@pytest.mark.parametrize("size", [1, 2, STEPS - 1, STEPS, STEPS + 1, 10_007, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_it_is_what_the_obvious_loop_makes_of_random_bytes(size: int) -> None:
    content = random_bytes(size, seed=size)
    assert fnv1a(io.BytesIO(content)) == obvious(content)


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x25, 0x80, 0xB3, 0xFF])
def test_it_is_what_the_obvious_loop_makes_of_one_byte_over_and_over(byte: int) -> None:
    content = bytes([byte]) * (BLOCK + 77)
    assert fnv1a(io.BytesIO(content)) == obvious(content)


def test_every_low_byte_meets_every_byte() -> None:
    pairs = [bytes([first, second]) for first in range(256) for second in range(256)]
    assert [fnv1a(io.BytesIO(pair)) for pair in pairs[::2003]] == [obvious(pair) for pair in pairs[::2003]]
    assert fnv1a(io.BytesIO(b"".join(pairs))) == obvious(b"".join(pairs))


def test_a_byte_that_differs_anywhere_changes_it() -> None:
    content = bytearray(random_bytes(BLOCK + 50))
    whole = fnv1a(io.BytesIO(content))
    for place in (0, STEPS, BLOCK - 1, BLOCK, BLOCK + 49):
        changed = bytearray(content)
        changed[place] ^= 1
        assert fnv1a(io.BytesIO(changed)) != whole


def test_a_file_that_comes_in_pieces_has_the_same_hash() -> None:
    content = random_bytes(BLOCK + 12_345)
    assert fnv1a(Trickle(content)) == fnv1a(io.BytesIO(content))


def test_it_says_how_much_it_has_read() -> None:
    told: list[int] = []
    fnv1a(io.BytesIO(bytes(BLOCK + 5)), told.append)
    assert told == [BLOCK, 5]
