"""Files that are replaced as a whole: whoever reads one meets the old content or the new, never a half."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` in the place of the file `path`, which may be a link; it has the permissions that it had or would.

    Raises:
        OSError: it cannot be written; what was there stays as it was.
    """
    path = path.resolve()
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, suffix=".new", delete=False) as new:
        try:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
            new.close()
            Path(new.name).chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
            Path(new.name).replace(path)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise


def _umask() -> int:
    """What the user takes from the permissions of new files; it can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
