"""A file of the catalog, or all parts of a split one, on this machine.

What is there is trusted by what was written beside it, so that neither the hub nor the package that talks to it is
needed for a file that is whole.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePath

from specdec_cli.catalog import HubFile, parts_of, place_of
from specdec_cli.downloads.meter import Progress
from specdec_cli.downloads.provenance import read_provenance
from specdec_cli.errors import ModelError


def fetch(source: HubFile, *, on_progress: Progress) -> Path:
    """Where `source` lies on this machine, after fetching what is not there yet of it and of its other parts.

    `on_progress` is called with what goes on, and with the share of all bytes that are here, 0..1, or None. An
    interrupted call leaves nothing at that place, and the next one goes on where it stopped.

    Raises:
        ModelError: it cannot be had, or is not what is pinned or what the hub says; or it cannot be written.
    """
    _check_inside(source)
    sources = _with_parts(source)
    if not _are_here(sources):
        try:
            from specdec_cli.downloads.transfers import transfer
        except ImportError as error:
            raise ModelError(
                f"downloads need the package huggingface_hub: {error}", hint='pip install "specdec-cli[hub]"'
            ) from None
        try:
            transfer(sources, on_progress)
        except OSError as error:
            path = error.filename or place_of(source)
            raise ModelError(
                f"{path} cannot be written: {error.strerror or error}", hint="what has come so far is kept"
            ) from None
    return place_of(source)


def _with_parts(source: HubFile) -> list[HubFile]:
    """`source` and the other parts of the model that it is the first of; what is pinned as SHA-256 is its own."""
    names = [path.as_posix() for path in parts_of(Path(source.file))]
    return [source, *(replace(source, file=name, sha256=None) for name in names[1:])]


def _check_inside(source: HubFile) -> None:
    """A models.toml may come from anybody: it must not write where it likes."""
    path = PurePath(source.repo) / source.file
    if path.is_absolute() or ".." in path.parts:
        raise ModelError(f"{source.file} of {source.repo} is no path inside a repository", hint="write it without ..")


def _are_here(sources: list[HubFile]) -> bool:
    """Whether all are whole, what is pinned, and of one commit."""
    commits = set()
    for source in sources:
        known = read_provenance(place_of(source))
        if not (known and known.is_of(place_of(source)) and known.satisfies(source.revision, source.sha256)):
            return False
        commits.add(known.commit)
    return len(commits) == 1
