"""Where models, configuration, measurements and history are kept, and whether they can be."""

from __future__ import annotations

import json
import os
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
        to_place("config", own_table(config)),
        to_place("cache", platformdirs.user_cache_path("specdec", appauthor=False)),
        to_place("state", platformdirs.user_state_path("specdec", appauthor=False)),
    )


def to_place(title: str, path: Path) -> Place:
    """What is known of `path`."""
    nearest = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
    usable = nearest == path or nearest.is_dir()
    needed = os.W_OK | os.X_OK if nearest.is_dir() else os.W_OK
    return Place(title, path, path.exists(), usable and os.access(nearest, needed), _size(path))


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
    except ValueError:
        return KeptCosts(path, problem="is damaged")
    if not isinstance(entries, dict):
        return KeptCosts(path, problem="is damaged")
    costs = [calibration.load(key) for key in entries]
    whole = tuple(each for each in costs if each is not None)
    return KeptCosts(path, whole, "" if len(whole) == len(costs) else "is damaged in part")


def _size(path: Path) -> int:
    """Bytes of a file, or of all files of a folder; links count as what they are."""
    files: Sequence[Path] = [path]
    if path.is_dir():
        files = [Path(folder) / name for folder, _, names in os.walk(path) for name in names]
    total = 0
    for each in files:
        with suppress(OSError):
            total += each.lstat().st_size
    return total
