"""A folder of tensors that clients need not send again, none of which is served before its content was checked.

ggml keeps each under the hash of its bytes and serves it by that name, whatever the file holds by then: one that a full
disk or a killed worker cut short would silently become wrong weights. So whoever writes a file takes its name away in
the very call that wrote it (`set_aside`), and it gets that back once it was read and has the right hash. What a worker
leaves behind that dies in between is checked before the next one starts; an index says what needs no second look.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from specdec_cli.downloads.meter import Meter, Progress
from specdec_cli.errors import UsageError
from specdec_cli.files import read_file, replace_file
from specdec_cli.worker.fnv import fnv1a

TENSOR: Final = re.compile(r"[0-9a-f]{16}")
ASIDE: Final = re.compile(r"([0-9a-f]{16})\.\d+-\d+\.new")
INDEX: Final = ".specdec-checked.json"
LOCK: Final = ".specdec.lock"

Stamp = tuple[int, int]
"""Size in bytes and time of the last change in nanoseconds: what tells a file that was changed."""

_numbers = count()


@dataclass(frozen=True, slots=True)
class Checked:
    """How many files were found right and how many bytes they hold, and how many were wrong and are deleted."""

    kept: int = 0
    bytes: int = 0
    deleted: int = 0


def set_aside(name: str) -> None:
    """Take the tensor in the file `name` of the current folder out of service. It may still be open for writing.

    Raises:
        OSError: it is still there; it must not be served.
    """
    with suppress(FileNotFoundError):
        Path(name).rename(f"{name}.{os.getpid()}-{next(_numbers)}.new")


class TensorCache:
    """The tensors in `folder`, which is made if need be, and belongs to this process and its children from now on.

    Raises:
        UsageError: there can be no such folder, or another worker has it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._busy = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
            free = _try_lock(self.lock)
            next(folder.iterdir())
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"--cache {folder} cannot be used: {reason}", hint="give a folder of your own") from error
        if not free:
            os.close(self.lock)
            raise UsageError(f"--cache {folder} belongs to another worker", hint="give each worker a folder of its own")

    def check(self, on_progress: Progress = lambda _task, _share: None, *, only_new: bool = False) -> Checked:
        """Look into what was never found right: files set aside, and all others that changed unless it is `only_new`.

        A file that does not hold what its name says is deleted, one that is none of ggml's left alone.

        Raises:
            UsageError: a wrong one cannot be deleted.
        """
        with self._busy:
            index = self._read_index()
            found = [each for each in self._files() if ASIDE.fullmatch(each.name) or not only_new]
            doubtful = {each: stamp for each in found if index.get(each.name) != (stamp := _stamp(each))}
            meter = Meter(sum(size for size, _ in doubtful.values()) or 1, on_progress)
            kept = deleted = 0
            try:
                for path, stamp in doubtful.items():
                    meter.name = f"checking {path.name[:16]}"
                    if _is_right(path, meter.move):
                        path.replace(self.folder / path.name[:16])
                        index[path.name[:16]] = stamp
                        kept += stamp[0]
                    else:
                        self._delete(path)
                        deleted += 1
            finally:
                self._write_index(index)
        return Checked(len(doubtful) - deleted, kept, deleted)

    def _files(self) -> Iterator[Path]:
        """All that look like ggml's, those first whose names are free to take."""
        for path in sorted(self.folder.iterdir(), key=lambda path: len(path.name)):
            if (TENSOR.fullmatch(path.name) or ASIDE.fullmatch(path.name)) and path.is_file():
                yield path

    def _delete(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"{path} holds wrong weights and cannot be deleted: {reason}") from error

    def _read_index(self) -> dict[str, Stamp]:
        """What was found right; of an index that is damaged or gone, nothing."""
        try:
            content = json.loads(read_file(self.folder / INDEX))
            return {str(name): (int(size), int(changed)) for name, (size, changed) in content.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _write_index(self, index: dict[str, Stamp]) -> None:
        """It only saves work: on a full disk the next worker reads more."""
        there = {name: stamp for name, stamp in index.items() if (self.folder / name).exists()}
        if there == self._read_index():
            return
        with suppress(OSError):
            replace_file(self.folder / INDEX, json.dumps(there).encode())


def _is_right(path: Path, on_bytes: Callable[[int], object]) -> bool:
    """Whether `path` holds what its name says, for good: what the system only remembers, a power cut would lose."""
    try:
        with path.open("rb") as file:
            right = fnv1a(file, on_bytes) == int(path.name[:16], 16)
            os.fsync(file.fileno())
            return right
    except OSError:
        return False


def _stamp(path: Path) -> Stamp:
    """Of a file that has gone meanwhile, none that a file can have."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


if sys.platform == "win32":

    def _try_lock(descriptor: int) -> bool:
        """Windows does not rename what is open, and so cannot keep an unchecked tensor from being served."""
        del descriptor
        raise OSError(None, "Windows renames no file that is being written")

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        """Take the lock of an open file, if nobody has it; it ends when that is closed in all processes."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
