"""FNV-1a of 64 bits, by which ggml names the files of its tensor cache, without a Python loop over bytes.

The hash is h ← (h ⊕ b)·PRIME modulo 2^64 for each byte b. Its low byte depends on nothing above it, and in it each bit
is the exclusive or of all those before at the same place and of what the lower bits carry: a running sum, bit by bit.
With the low bytes known, h ⊕ b is h plus a known difference, and the rest is linear. A block is cut into lanes that go
side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

PRIME: Final = 0x100000001B3
OFFSET: Final = 0xCBF29CE484222325
MODULUS: Final = 2**64
STEPS, LANES = 64, 8192
BLOCK: Final = STEPS * LANES
"""Bytes; half a mebibyte stays in a processor's cache."""
LOW_PRIME: Final = np.uint8(PRIME & 0xFF)
LANE_FACTORS: Final = np.array([pow(PRIME, STEPS * (LANES - 1 - lane), MODULUS) for lane in range(LANES)], np.uint64)
BLOCK_FACTOR: Final = pow(PRIME, BLOCK, MODULUS)

Bytes = npt.NDArray[np.uint8]


def fnv1a(file: BinaryIO, on_bytes: Callable[[int], object] = lambda _: None) -> int:
    """The hash of all that is left of `file`; `on_bytes` hears how many more were read.

    Raises:
        OSError: it cannot be read.
    """
    state = OFFSET
    while content := _read_block(file):
        on_bytes(len(content))
        missing = BLOCK - len(content)
        state = _continue(state, np.frombuffer(content + bytes(missing), np.uint8))
        if missing:  # zero bytes only multiply, and an odd factor can be undone
            return state * pow(PRIME, -missing, MODULUS) % MODULUS
    return state


def _read_block(file: BinaryIO) -> bytes:
    """The next `BLOCK` bytes, or less only at the end of the file."""
    content = file.read(BLOCK)
    while content and len(content) < BLOCK and (more := file.read(BLOCK - len(content))):
        content += more
    return content


def _continue(state: int, content: Bytes) -> int:
    """The hash after a whole block, when it was `state` before."""
    block = np.ascontiguousarray(content.reshape(LANES, STEPS).T)  # [steps, lanes]
    low = _low_bytes(state & 0xFF, block)
    differences = (low ^ block).astype(np.int16) - low
    sums = np.zeros(LANES, np.uint64)
    for row in differences:
        sums += row.astype(np.int64).view(np.uint64)
        sums *= np.uint64(PRIME)
    return (state * BLOCK_FACTOR + int((sums * LANE_FACTORS).sum())) % MODULUS


def _low_bytes(first: int, block: Bytes) -> Bytes:
    """The low byte of the hash before each byte of `block`, [steps, lanes], where `first` is the very first one."""
    low = np.zeros_like(block)
    flips = np.empty_like(block)
    for bit in (1 << place for place in range(8)):
        np.bitwise_xor(low, block, out=flips)
        flips &= np.uint8(bit - 1)
        flips *= LOW_PRIME
        flips ^= block
        flips &= np.uint8(bit)
        for step in range(1, STEPS):
            flips[step] ^= flips[step - 1]
        start = np.full(LANES, first & bit, np.uint8)
        start[1:] ^= np.bitwise_xor.accumulate(flips[-1, :-1])
        low[0] |= start
        flips[:-1] ^= start
        low[1:] |= flips[:-1]
    return low
