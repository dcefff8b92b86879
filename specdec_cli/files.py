"""Files that are read and replaced as a whole: whoever reads one meets the old content or the new, never a half."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def read_file(path: Path) -> bytes:
    """All of the file `path`.

    Raises:
        OSError: it cannot be read, whatever the reason; `strerror` says it in words.
    """
    try:
        return path.read_bytes()
    except ValueError:
        raise OSError(errno.EINVAL, "its name holds a zero byte") from None


def replace_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Put `content` in the place of the file `path`, which may be a link and keeps its permissions.

    A new file is for the user alone if it is `private`, and else for whom new files are.

    Raises:
        OSError: it cannot be written, or is a pipe, a device or a folder; what was there stays as it was.
    """
    path = target_of(path)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".specdec-", suffix=".new", delete=False) as new:
        try:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
            new.close()
            if path.exists():
                Path(new.name).chmod(path.stat().st_mode & 0o777)
            elif not private:
                Path(new.name).chmod(0o666 & ~_umask())
            Path(new.name).replace(path)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise


def target_of(path: Path) -> Path:
    """The file that `replace_file` would replace or make.

    Raises:
        OSError: it is a pipe, a device or a folder, has none to be in, or its links lead in a circle.
    """
    try:
        resolved = path.resolve()
    except RuntimeError:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
    if resolved.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if resolved.exists() and not resolved.is_file():
        raise OSError(errno.EINVAL, "it is a pipe or a device")
    if not resolved.parent.is_dir():
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    return resolved


def _umask() -> int:
    """What the user takes from the permissions of new files; it can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone with the file `path`, by a lock on an empty file beside it: the file itself is replaced.

    Raises:
        OSError: there is no place for the lock.
    """
    path = path.resolve()
    with path.with_name(f"{path.name}.lock").open("a+b") as lock:
        _wait_for(lock.fileno())
        yield


if sys.platform == "win32":
    import msvcrt

    def _wait_for(descriptor: int) -> None:
        """Take the lock of an open file; it ends when that is closed."""
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)

else:
    import fcntl

    def _wait_for(descriptor: int) -> None:
        """Take the lock of an open file; it ends when that is closed."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)
