"""A file of a cache: the tokens that a context holds and what llama.cpp made of them, to go on from in a later run.

After a line that says what it is come the identity of the model, the number of tokens, the tokens, the state, and
a digest of all of it. A state only fits the very model, adapters and kinds of cache that it was made with, and
llama.cpp does not check that; nor does it bear a damaged one.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from specdec_cli.errors import UsageError
from specdec_cli.files import replace_file
from specdec_cli.llama.library import llama

TITLE: Final = b"specdec cache 1\n"
DIGEST: Final = 16
HEAD: Final = struct.Struct(f"<{DIGEST}sI")
SAMPLES, SAMPLE = 256, 4096
"""How many parts of a model file are read to tell it from others, first and last bytes too, and of what size."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The tokens of a cache and their state."""

    tokens: Sequence[int]
    state: bytes | memoryview


def identify(files: Sequence[tuple[Path, float]], kinds: Sequence[str]) -> bytes:
    """What tells caches apart that do not fit each other: model and adapters with their scales, and kinds of cache.

    Raises:
        UsageError: a file cannot be read.
    """
    digest = blake2b(repr((llama().__version__, *kinds)).encode(), digest_size=DIGEST)
    for path, scale in files:
        try:
            size = path.stat().st_size
            digest.update(struct.pack("<Qd", size, scale))
            for sample in _samples(path, size):
                digest.update(sample)
        except OSError as error:
            raise UsageError(f"no cache without {path}: {error.strerror or error}") from error
    return digest.digest()


def _samples(path: Path, size: int) -> Iterator[bytes]:
    last = max(0, size - SAMPLE)
    with path.open("rb") as file:
        for part in range(SAMPLES):
            file.seek(part * last // (SAMPLES - 1))
            yield file.read(SAMPLE)


def write_cache(path: Path, identity: bytes, saved: Saved) -> None:
    """Put `saved` in the place of the file `path`, in a folder that is made if need be.

    Raises:
        UsageError: it cannot be written; what was there stays as it was.
    """
    head = TITLE + HEAD.pack(identity, len(saved.tokens))
    parts = head, array("i", saved.tokens).tobytes(), saved.state
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, b"".join((*parts, _digest(*parts))), private=True)
    except OSError as error:
        raise UsageError(f"cannot write cache {path}: {error.strerror or error}") from error


def read_cache(path: Path, identity: bytes) -> Saved | None:
    """What was written there of the model with this `identity`; None if there is no file.

    Raises:
        UsageError: the file cannot be read, is damaged, or is something else, or of another model.
    """
    content = _content(path)
    if content is None:
        return None
    body = content[:-DIGEST]
    if len(body) < len(TITLE) + HEAD.size or _digest(body) != content[-DIGEST:]:
        raise UsageError(f"cache {path} is damaged")
    whose, count = HEAD.unpack_from(body, len(TITLE))
    if whose != identity:
        raise UsageError(f"cache {path} is of another model, or of other --lora, --cache-type or --flash-attn options")
    start = len(TITLE) + HEAD.size
    tokens = array("i")
    end = start + tokens.itemsize * count
    if end > len(body):
        raise UsageError(f"cache {path} is damaged")
    tokens.frombytes(body[start:end])
    return Saved(tokens.tolist(), body[end:])


def _content(path: Path) -> memoryview | None:
    """All of a cache file. Of another file, which may be big, only a line is read."""
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"cache {path} is not a file")
        with path.open("rb") as file:
            if file.read(len(TITLE)) != TITLE:
                raise UsageError(f"{path} is not a cache of specdec")
            file.seek(0, os.SEEK_SET)
            return memoryview(file.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read cache {path}: {error.strerror or error}") from error


def _digest(*parts: bytes | memoryview) -> bytes:
    digest = blake2b(digest_size=DIGEST)
    for part in parts:
        digest.update(part)
    return digest.digest()
