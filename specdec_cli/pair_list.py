"""Which pairs there are: the shipped models.toml, and the user's own, which adds to it and overrides it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from specdec_cli.errors import UsageError
from specdec_cli.pair_table import Table, read_table, shipped_table


@dataclass(frozen=True, slots=True)
class Catalog:
    """All pairs by their names, each as it is written, with the table that says so; and the name of the default."""

    pairs: Mapping[str, tuple[Table, dict[str, Any]]]
    default: str | None

    def find(self, name: str | None) -> tuple[str, Table, dict[str, Any]]:
        """The pair `name` or the default pair: its name, its table, and what is written there.

        Raises:
            UsageError: there is no such pair.
        """
        chosen = self.default if name is None else name
        if chosen is None or chosen not in self.pairs:
            close = difflib.get_close_matches(chosen or "", self.pairs, 1)
            meant = f'did you mean "{close[0]}"? ' if close else ""
            hint = f"{meant}known pairs: {', '.join(sorted(self.pairs))}; or give files: -m, -d"
            raise UsageError(f'no pair named "{chosen}" in models.toml', hint=hint)
        return chosen, *self.pairs[chosen]


def own_table(config: Path | None) -> Path:
    """The user's own models.toml, or `config` in its place; it need not be there."""
    return config or platformdirs.user_config_path("specdec", appauthor=False) / "models.toml"


def read_catalog(config: Path | None) -> Catalog:
    """All pairs; `config` replaces the user's own models.toml.

    Raises:
        UsageError: a models.toml is wrong, or `config` is not there.
    """
    tables = [read_table(shipped_table())]
    own = own_table(config)
    if config is not None or _may_be_there(own):
        tables.append(read_table(own))
    pairs = {name: (table, entry) for table in tables for name, entry in table.pairs.items()}
    return Catalog(pairs, next((table.default for table in reversed(tables) if table.default), None))


def _may_be_there(path: Path) -> bool:
    """Whether `path` is there, or may be: reading it tells what hides it."""
    try:
        path.stat()
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    return True
