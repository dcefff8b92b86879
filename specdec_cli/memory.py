"""The file of `--memory`: outputs of earlier runs as tokens, for lookup to find them again, and prompts if asked for.

After a line that says what it is come records, the oldest first: the fingerprint of the vocabulary, the number of
tokens, the tokens; and a checksum of all of it at the end. Every change writes a new file in the old one's place while
it holds a lock, so that a reader sees one whole version, and two writers lose nothing of each other's.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from specdec_cli.errors import UsageError
from specdec_cli.files import locked, replace_file

LIMIT: Final = 1 << 18
"""Tokens in a file, of all vocabularies together: half a second to index at the start of a run, and 1 MB."""
TITLE: Final = b"specdec memory 1\n"
HEAD: Final = struct.Struct("<16sI")
"""Of a record: fingerprint, number of tokens."""
CHECKSUM: Final = struct.Struct("<I")

Record = tuple[bytes, "array[int]"]


def load(path: Path, fingerprint: bytes) -> list[Sequence[int]]:
    """Remembered outputs of the vocabulary with `fingerprint`, the latest last; none if there is no file.

    Raises:
        UsageError: the file cannot be read, is damaged, or is something else.
    """
    return [tokens for whose, tokens in _read(path) if whose == fingerprint]


def remember(path: Path, fingerprint: bytes, tokens: Sequence[int]) -> None:
    """Add an output as the latest. The oldest are dropped above `LIMIT`, and what is remembered twice moves up.

    Raises:
        UsageError: as for `load`, or it cannot be written; what was there stays as it was.
    """
    if not tokens:
        return
    try:
        with locked(path):
            latest = fingerprint, array("I", tokens[-LIMIT:])
            records = [*(record for record in _read(path) if record != latest), latest]
            replace_file(path, _to_bytes(_newest(records)), private=True)
    except OSError as error:
        raise UsageError(f"cannot write memory {path}: {error.strerror or error}") from error


def _newest(records: Sequence[Record]) -> list[Record]:
    kept: list[Record] = []
    left = LIMIT
    for record in reversed(records):
        left -= len(record[1])
        if left < 0:
            break
        kept.append(record)
    return kept[::-1]


def _to_bytes(records: Sequence[Record]) -> bytes:
    parts = [TITLE]
    for whose, tokens in records:
        parts += [HEAD.pack(whose, len(tokens)), _swapped(tokens).tobytes()]
    content = b"".join(parts)
    return content + CHECKSUM.pack(zlib.crc32(content))


def _read(path: Path) -> list[Record]:
    content = _content(path)
    if not content:
        return []
    body, checksum = content[: -CHECKSUM.size], content[-CHECKSUM.size :]
    if CHECKSUM.pack(zlib.crc32(body)) != checksum:
        raise UsageError(f"memory {path} is damaged", hint="remove it to start anew")
    return list(_records(memoryview(body)[len(TITLE) :]))


def _content(path: Path) -> bytes:
    """All of a memory, nothing if there is none yet. Of another file, which may be big, only a line is read."""
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"memory {path} is not a file")
        with path.open("rb") as file:
            title = file.read(len(TITLE))
            if title not in (b"", TITLE):
                raise UsageError(f"{path} is not a memory of specdec", hint="name another file for --memory")
            return title + file.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UsageError(f"cannot read memory {path}: {error.strerror or error}") from error


def _records(body: memoryview) -> Iterator[Record]:
    """The records of a body that its checksum vouches for."""
    while body:
        whose, count = HEAD.unpack_from(body)
        end = HEAD.size + 4 * count
        tokens = array("I")
        tokens.frombytes(body[HEAD.size : end])
        yield whose, _swapped(tokens)
        body = body[end:]


def _swapped(tokens: array[int]) -> array[int]:
    """`tokens` in little-endian order, from the order of this machine or to it."""
    if sys.byteorder == "little":
        return tokens
    tokens = array("I", tokens)
    tokens.byteswap()
    return tokens
