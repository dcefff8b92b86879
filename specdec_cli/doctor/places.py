"""Where models, configuration, measurements and history are kept, and whether they can be."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from specdec_cli import calibration
from specdec_cli.core.costs import Costs
from specdec_cli.errors import UsageError
from specdec_cli.pair_list import own_table, read_catalog


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder of specdec: whether it is there, whether it can be written or made, and its bytes."""

    title: str
    path: Path
    exists: bool
    writable: bool
    size: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs that have names: how many, how many of them the user's own, and the default; or a `problem`."""

    known: int = 0
    own: int = 0
    default: str | None = None
    problem: UsageError | None = None


@dataclass(frozen=True, slots=True)
class KeptCosts:
    """The measurements that are kept. `problem` says in words what is wrong with their file, if anything."""

    path: Path
    costs: tuple[Costs, ...] = ()
    problem: str = ""


def read_places(config: Path | None) -> tuple[Place, ...]:
    """All of them; `config` takes the place of the user's own models.toml."""
    return (
        to_place("models", platformdirs.user_data_path("specdec", appauthor=False) / "models"),
        to_place("config", own_table(config), is_file=True),
        to_place("cache", platformdirs.user_cache_path("specdec", appauthor=False)),
        to_place("state", platformdirs.user_state_path("specdec", appauthor=False)),
    )


def to_place(title: str, path: Path, *, is_file: bool = False) -> Place:
    """What is known of `path`, a folder or a file; another file takes the place of that, so its folder is what counts.

    What may not be looked at is not there.
    """
    whole = Path(os.path.realpath(path))
    folder = whole.parent if is_file else whole
    nearest = next((each for each in (folder, *folder.parents) if os.path.lexists(each)), folder)
    writable = stat.S_ISDIR(_mode(nearest)) and os.access(nearest, os.W_OK | os.X_OK)
    return Place(title, path, bool(_mode(path)), writable, _size(path))


def read_pairs(config: Path | None) -> Pairs:
    """The pairs of the shipped models.toml and the user's own."""
    try:
        catalog = read_catalog(config)
    except UsageError as error:
        return Pairs(problem=error)
    own = sum(table.path == own_table(config) for table, _ in catalog.pairs.values())
    return Pairs(len(catalog.pairs), own, catalog.default)


def read_kept_costs() -> KeptCosts:
    """What `specdec_cli.calibration` keeps, and whether it can be read."""
    path = platformdirs.user_cache_path("specdec", appauthor=False) / "costs.json"
    try:
        entries: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return KeptCosts(path)
    except OSError as error:
        return KeptCosts(path, problem=f"cannot be read: {error.strerror}")
    except (ValueError, RecursionError):
        return KeptCosts(path, problem="is damaged")
    if not isinstance(entries, dict):
        return KeptCosts(path, problem="is damaged")
    costs = [calibration.load(key) for key in entries]
    whole = tuple(each for each in costs if each is not None)
    return KeptCosts(path, whole, "" if len(whole) == len(costs) else "is damaged in part")


def _mode(path: Path) -> int:
    """The kind and permissions of what is at `path`, as `stat` has them; 0 if that cannot be told."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _size(path: Path) -> int:
    """Bytes of a file, or of all files of a folder; links count as what they are."""
    files: Sequence[Path] = [path]
    if stat.S_ISDIR(_mode(path)):
        files = [Path(folder) / name for folder, _, names in os.walk(path) for name in names]
    total = 0
    for each in files:
        with suppress(OSError):
            total += each.lstat().st_size
    return total
