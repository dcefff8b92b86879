"""Toy models with something to say: the same words to any question, or the same word forever."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.toy_gguf import EOS, FIRST_EXTRA, memoryless_toy


def says(pieces: Sequence[str], path: Path) -> Path:
    """A model whose answer to anything is `pieces`, one token each and none a single byte, and then the end."""
    table = {FIRST_EXTRA + at: {FIRST_EXTRA + at + 1: 1.0} for at in range(len(pieces) - 1)}
    table[FIRST_EXTRA + len(pieces) - 1] = {EOS: 1.0}
    toy = memoryless_toy(table, {FIRST_EXTRA: 1.0}, extra=[piece.encode() for piece in pieces])
    return toy.having({"llama.context_length": 2**14}).write(path)


def repeats(piece: str, path: Path) -> Path:
    """A model that says `piece` for longer than any test waits."""
    toy = memoryless_toy({}, {FIRST_EXTRA: 1.0}, extra=[piece.encode()])
    return toy.having({"llama.context_length": 2**17}).write(path)
