"""Tables of n-grams in files: what `specdec table build` writes and `--draft table:FILE` reads.

A zip of numpy arrays. Of each level it holds how many n-grams go on from each of the level before, their last tokens
as steps from the one before, and their counts, each array split into its bytes: what is small or grows slowly then
packs into a byte and a half. The fingerprint is that of the vocabulary whose ids the table is about.
"""

from __future__ import annotations

import io
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from specdec_cli.core.ngram_counts import pruned
from specdec_cli.core.ngrams import BITS, UNIT, Level, NgramTable, to_keys
from specdec_cli.errors import UsageError
from specdec_cli.files import read_file, replace_file

VERSION: Final = 1
LONGEST_ORDER: Final = 8
HINT: Final = "specdec table build makes one"


def read_ngrams(path: Path) -> tuple[NgramTable, bytes]:
    """The table of `path`, and the fingerprint of its vocabulary.

    Raises:
        UsageError: it cannot be read, is damaged, is of a later version, or is something else.
    """
    try:
        content = read_file(path)
    except OSError as error:
        raise UsageError(f"table {path} cannot be read: {error.strerror}", hint=HINT) from None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return _table(path, arrays)
    except UsageError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds for bytes that are no table
        raise _refused(path) from error


def write_ngrams(path: Path, table: NgramTable, fingerprint: bytes) -> None:
    """Write `table` to `path`, whole or not at all.

    Raises:
        UsageError: it cannot be written; what was there stays as it was.
    """
    try:
        replace_file(path, to_bytes(table, fingerprint))
    except OSError as error:
        raise UsageError(f"table {path} cannot be written: {error.strerror or error}") from None


def to_bytes(table: NgramTable, fingerprint: bytes) -> bytes:
    """The content of a file."""
    arrays: dict[str, Any] = {
        "version": np.array(VERSION),
        "vocabulary": np.array(table.vocabulary),
        "fingerprint": np.frombuffer(fingerprint, np.uint8),
        "order": np.array(table.order),
    }
    before = 1
    for length, level in enumerate(table.levels, 1):
        arrays[f"followers{length}"] = _split(np.bincount(level.parents, minlength=before))
        arrays[f"tokens{length}"] = _split(np.diff(level.tokens, prepend=0) & ((1 << BITS) - 1))
        arrays[f"counts{length}"] = _split(level.counts)
        before = len(level.keys)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def within(table: NgramTable, most: int, fingerprint: bytes) -> NgramTable:
    """`table` without its rarest n-grams, as many as it takes for its file to have at most `most` bytes."""
    if len(to_bytes(table, fingerprint)) <= most:
        return table
    steps = np.unique(np.concatenate([level.counts for level in table.levels])) / UNIT
    fits = bisect_left(steps, True, key=lambda step: len(to_bytes(pruned(table, step), fingerprint)) <= most)
    return pruned(table, float(steps[fits]) if fits < len(steps) else np.inf)


def _table(path: Path, arrays: Mapping[str, Any]) -> tuple[NgramTable, bytes]:
    if int(arrays["version"]) > VERSION:
        raise UsageError(f"table {path} was written by a later specdec", hint="update specdec-cli, or build it anew")
    vocabulary, order = int(arrays["vocabulary"]), int(arrays["order"])
    if not 0 < vocabulary <= 1 << BITS:
        raise _refused(path)
    levels: list[Level] = []
    before = 1
    for length in range(1, min(order, LONGEST_ORDER) + 1):
        followers, counts = _joined(arrays[f"followers{length}"]), _joined(arrays[f"counts{length}"])
        tokens = np.cumsum(_joined(arrays[f"tokens{length}"])) & ((1 << BITS) - 1)
        if len(followers) != before or not followers.sum() == len(counts) == len(tokens):
            raise _refused(path)
        keys = to_keys(np.repeat(np.arange(before), followers), tokens)
        if (np.diff(keys) <= 0).any() or (tokens >= vocabulary).any():
            raise _refused(path)
        levels.append(Level(keys, counts.astype(np.uint32)))
        before = len(keys)
    if not levels:
        raise _refused(path)
    return NgramTable(vocabulary, tuple(levels)), arrays["fingerprint"].tobytes()


def _split(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The four bytes of each of `numbers` [n], the lowest ones first: [4, n]."""
    return np.ascontiguousarray(numbers.astype("<u4").view(np.uint8).reshape(-1, 4).T)


def _joined(split: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(split.T).view("<u4").ravel().astype(np.int64)


def _refused(path: Path) -> UsageError:
    return UsageError(f"{path} is not a table of specdec, or is damaged", hint=HINT)
