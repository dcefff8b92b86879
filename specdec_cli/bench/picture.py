"""Whether a picture can be made, told before anything is measured."""

from __future__ import annotations

import errno
import importlib.util
import os
from pathlib import Path
from typing import Final

from specdec_cli.errors import UsageError
from specdec_cli.files import target_of

ENDINGS: Final = (".svg", ".png")


def check_picture(path: Path) -> None:
    """Refuse what could not be drawn or written to `path` in the end.

    Raises:
        UsageError: the ending says another format, nothing can be there, or matplotlib is not installed.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"--plot {path} has no ending that is known", hint=f"name a file {' or '.join(ENDINGS)}")
    try:
        if not os.access(target_of(path).parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UsageError(f"--plot {path} cannot be written: {error.strerror}") from None
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib", hint='pip install "specdec-cli[plots]"')
