"""Where a downloaded file came from, in a small JSON file beside it, so that it need not be asked or read again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from specdec_cli.files import replace_file


@dataclass(frozen=True, slots=True)
class Provenance:
    """A file of the hub as the hub describes it.

    `revision` is what was asked for, None for the main branch; `commit` is what that stood for then; `size` is in
    bytes; `sha256` is in hexadecimal.
    """

    repo: str
    file: str
    revision: str | None
    commit: str
    sha256: str
    size: int

    def is_of(self, place: Path) -> bool:
        """Whether the file at `place` is still as long as it was."""
        return place.is_file() and place.stat().st_size == self.size

    def satisfies(self, revision: str | None, sha256: str | None) -> bool:
        """Whether this is what is pinned; nothing is by None."""
        return revision in (None, self.revision, self.commit) and (sha256 or self.sha256).lower() == self.sha256


def read_provenance(place: Path) -> Provenance | None:
    """What was written about the file at `place`; None if nothing that can be read."""
    try:
        written = json.loads(_beside(place).read_text("utf-8"))
        return Provenance(**{field.name: written[field.name] for field in fields(Provenance)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_provenance(place: Path, provenance: Provenance) -> None:
    """Write `provenance` beside the file at `place`."""
    replace_file(_beside(place), (json.dumps(asdict(provenance), indent=2) + "\n").encode())


def forget_provenance(place: Path) -> None:
    """Take away what was written about the file at `place`."""
    _beside(place).unlink(missing_ok=True)


def _beside(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")
