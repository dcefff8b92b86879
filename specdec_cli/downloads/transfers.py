"""Files from the hub to their places: gone on with after an interruption, counted, and checked before they are named.

What has come is kept beside the place under another name that holds the beginning of the file's hash, so that only
the rest of the same file is ever added to it. A lock keeps two processes from writing the same one.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

from specdec_cli.catalog import HubFile, place_of
from specdec_cli.downloads import hub
from specdec_cli.downloads.meter import Meter, Progress
from specdec_cli.downloads.provenance import Provenance, forget_provenance, read_provenance, write_provenance
from specdec_cli.errors import ModelError

PAUSES: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds to wait before each further try, while tries bring nothing."""
CHUNK: Final = 1 << 20


def transfer(sources: Sequence[HubFile], on_progress: Progress) -> None:
    """Bring `sources`, which belong together, to their places; what is there already is only checked.

    Raises:
        ModelError: one of them cannot be had, or is not what it should be.
        OSError: a file cannot be written.
    """
    found = _describe(sources)
    places = [place_of(source) for source in sources]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
    _check_space(found, places)
    meter = Meter(sum(each.size for each in found), on_progress)
    for each, place in zip(found, places, strict=True):
        meter.name = place.name
        with _alone_with(place, on_progress):
            _bring(each, place, meter)


def _describe(sources: Sequence[HubFile]) -> list[Provenance]:
    """What `sources` are at the hub, all of one commit: that of those that are here, if no revision is pinned."""
    known = [each for each in (read_provenance(place_of(source)) for source in sources) if each]
    commit = sources[0].revision or (known[0].commit if len(sources) > 1 and known else None)
    found: list[Provenance] = []
    for source in sources:
        found.append(_described(source, found[0].commit if found else commit))
        if not found[-1].satisfies(None, source.sha256):
            raise ModelError(
                f"{source.file} of {source.repo} has the SHA-256 {found[-1].sha256}, where {source.sha256} is wanted",
                hint="it was changed at the hub: pin the revision that had the wanted one, or the new SHA-256",
            )
    return found


def _described(source: HubFile, revision: str | None) -> Provenance:
    pauses = iter(PAUSES)
    while True:
        try:
            return replace(hub.describe(source.repo, source.file, revision), revision=source.revision)
        except hub.BusyError as error:
            _wait(pauses, error)


def _wait(pauses: Iterator[float], error: ModelError) -> None:
    """Rest before another try; raise `error` if there were enough."""
    pause = next(pauses, None)
    if pause is None:
        raise error
    time.sleep(pause)


def _check_space(found: Sequence[Provenance], places: Sequence[Path]) -> None:
    missing = 0
    for each, place in zip(found, places, strict=True):
        if _length(place) != each.size:
            missing += max(each.size - _length(_part_of(place, each)), 0)
    free = shutil.disk_usage(places[0].parent).free
    if missing > free:
        raise ModelError(
            f"{places[0].name} needs {missing / 1e9:.2f} GB more, and {places[0].parent} has {free / 1e9:.2f} GB left",
            hint="free some space, or choose a smaller quantisation",
        )


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _alone_with(place: Path, tell: Progress) -> Iterator[None]:
    lock = place.with_name(f"{place.name}.lock")
    with ExitStack() as stack:
        try:
            stack.enter_context(hub.WeakFileLock(lock, timeout=0.1))
        except TimeoutError:
            tell(f"waiting for another download of {place.name}", None)
            stack.enter_context(hub.WeakFileLock(lock))
        yield


def _bring(wanted: Provenance, place: Path, meter: Meter) -> None:
    meter.move(0)
    known = read_provenance(place)
    if known and known.is_of(place) and known.sha256 == wanted.sha256:
        meter.move(wanted.size)
    elif not known and place.exists():
        _check_found(wanted, place, meter)
    else:
        _download(wanted, place, meter)
    write_provenance(place, wanted)


def _check_found(wanted: Provenance, place: Path, meter: Meter) -> None:
    """Accept the file at `place`, of which nothing is known, as the wanted one if it is."""
    digest = sha256()
    with place.open("rb") as file:
        for chunk in _chunks(file):
            digest.update(chunk)
            meter.move(len(chunk))
    if digest.hexdigest() != wanted.sha256:
        raise ModelError(
            f"{place} is there already, and is not the {wanted.file} of {wanted.repo}",
            hint="move it away and run the same again, or use it as it is: -m, -d",
        )


def _download(wanted: Provenance, place: Path, meter: Meter) -> None:
    path = _part_of(place, wanted)
    with path.open("ab+") as file:
        part = _Part(file, meter)
        _receive(wanted, part)
        file.flush()
        os.fsync(file.fileno())
    if part.digest.hexdigest() != wanted.sha256:
        path.unlink()
        raise ModelError(
            f"{wanted.file} of {wanted.repo} arrived damaged: its SHA-256 is not the one that the hub says",
            hint="it was thrown away: run the same again",
        )
    forget_provenance(place)
    path.replace(place)
    for stale in place.parent.glob(f"{escape(place.name)}.*.part"):
        stale.unlink()


def _part_of(place: Path, wanted: Provenance) -> Path:
    return place.with_name(f"{place.name}.{wanted.sha256[:16]}.part")


class _Part:
    """What is here of a file, in `file`, with its size and its hash."""

    def __init__(self, file: BinaryIO, meter: Meter) -> None:
        self.size = 0
        self.digest = sha256()
        self._file = file
        self._meter = meter
        file.seek(0)
        for chunk in _chunks(file):
            self._count(chunk)

    def add(self, position: int, chunk: bytes) -> None:
        """Append bytes that belong at `position`, after as many of the bytes before them as are good."""
        if position != self.size:
            self.start_over()
        self._file.write(chunk)
        self._count(chunk)

    def start_over(self) -> None:
        """Throw away what is here."""
        self._file.truncate(0)
        self._meter.move(-self.size)
        self.size, self.digest = 0, sha256()

    def _count(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.digest.update(chunk)
        self._meter.move(len(chunk))


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(CHUNK), b"")


def _receive(wanted: Provenance, part: _Part) -> None:
    """Make `part` whole, in as many tries as bring something, and a few that do not."""
    if part.size > wanted.size:
        part.start_over()
    pauses = iter(PAUSES)
    while part.size < wanted.size:
        before = part.size
        try:
            with closing(hub.read(wanted, part.size)) as arriving:
                for position, chunk in arriving:
                    part.add(position, chunk)
        except hub.LostError as error:
            if part.size > before:
                pauses = iter(PAUSES)
            _wait(pauses, error)
