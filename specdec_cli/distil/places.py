"""Where a file that grows for hours is to be: refused before anything takes time."""

from __future__ import annotations

from pathlib import Path

from specdec_cli.errors import UsageError
from specdec_cli.files import target_of


def checked(what: str, path: Path) -> Path:
    """The file that `path` stands for, which need not be there; `what` is how messages call it.

    Raises:
        UsageError: no file can be there.
    """
    try:
        return target_of(path)
    except OSError as error:
        raise UsageError(
            f"{what} {path} cannot be written: {error.strerror or error}", hint="name a file with -o"
        ) from None
