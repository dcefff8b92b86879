"""What the tests of the downloads fetch, and what is there afterwards."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from specdec_cli.catalog import HubFile, place_of
from specdec_cli.downloads import fetch
from specdec_cli.errors import ModelError

REPO: Final = "tester/toys-GGUF"
CONTENT: Final = b"GGUF" + bytes(range(256)) * 40
"""10,244 bytes."""
OTHER: Final = b"GGUF" + bytes(range(255, -1, -1)) * 40
FILE: Final = HubFile(REPO, "toy-Q4_0.gguf")
HASH: Final = sha256(CONTENT).hexdigest()


def pull(source: HubFile = FILE) -> Path:
    """Fetch `source` while nobody looks."""
    return fetch(source, on_progress=lambda *_: None)


def failure(source: HubFile = FILE) -> ModelError:
    """Why `source` cannot be fetched: one line, and another for the way out."""
    with pytest.raises(ModelError) as caught:
        pull(source)
    for line in (caught.value.message, caught.value.hint):
        assert line
        assert "\n" not in line
    return caught.value


def names() -> list[str]:
    """What lies where the file belongs, but for the lock."""
    return sorted(path.name for path in place_of(FILE).parent.glob("*") if path.suffix != ".lock")


def part() -> Path:
    """What is there of a file that is not whole yet."""
    return next(place_of(FILE).parent.glob("*.part"))
