"""Changes to a models.toml that leave all else in it as it is: comments, order, blank lines.

The only room that imports tomlkit, which the others need not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.items import InlineTable, Table

from specdec_cli.errors import UsageError
from specdec_cli.files import locked, replace_file
from specdec_cli.pair_table import read_table

BEGINNING: Final = "# Your own pairs for specdec. They add to the shipped ones and override those of the same name.\n"


def add_pair(path: Path, name: str, entry: Mapping[str, Any], *, replace: bool) -> None:
    """Write the pair `name` into the models.toml `path`, which is made if it is not there.

    Of a pair that it has already, lines that say the same as before stay as they are.

    Raises:
        UsageError: it has a pair of that name and `replace` is false; or it is wrong, or cannot be written.
    """

    def change(document: tomlkit.TOMLDocument) -> None:
        if name in document.get("pairs", {}) and not replace:
            raise UsageError(f'{path} has a pair named "{name}" already', hint="--force replaces it")
        pairs = document.setdefault("pairs", tomlkit.table(is_super_table=True))
        table = pairs.get(name)
        if not isinstance(table, Table | InlineTable):
            table = tomlkit.inline_table() if isinstance(pairs, InlineTable) else tomlkit.table()
        with _ending(table):
            for key in set(table) - set(entry):
                del table[key]
            for key, value in entry.items():
                if key not in table or table[key] != value:
                    table[key] = _inline(value) if isinstance(value, Mapping) else value
        if pairs.get(name) is not table:
            pairs[name] = table

    _rewrite(path, change)


def to_toml(name: str, entry: Mapping[str, Any]) -> str:
    """The pair `name` as `add_pair` would write it into a new file."""
    table = tomlkit.table()
    for key, value in entry.items():
        table[key] = _inline(value) if isinstance(value, Mapping) else value
    pairs = tomlkit.table(is_super_table=True)
    pairs[name] = table
    return tomlkit.dumps({"pairs": pairs})


def remove_pair(path: Path, name: str) -> None:
    """Take the pair `name`, which is there, out of the models.toml `path`; its default too if that is the one.

    Raises:
        UsageError: it is wrong, or cannot be written.
    """

    def change(document: tomlkit.TOMLDocument) -> None:
        del document["pairs"][name]
        if document.get("default") == name:
            del document["default"]

    _rewrite(path, change)


def set_default(path: Path, name: str) -> None:
    """Make `name` the default of the models.toml `path`, which is made if it is not there.

    Raises:
        UsageError: it is wrong, or cannot be written.
    """

    def change(document: tomlkit.TOMLDocument) -> str | None:
        if "default" in document:
            document["default"] = name
            return None
        line = tomlkit.document()
        line["default"] = name
        return tomlkit.dumps(line) + "\n"

    _rewrite(path, change)


def _inline(value: Mapping[str, Any]) -> InlineTable:
    table = tomlkit.inline_table()
    table.update(value)
    return table


@contextmanager
def _ending(table: Table | InlineTable) -> Iterator[None]:
    """Keep what stands behind the last key of `table` at its end: it is mostly about the table that follows."""
    last: Any = table
    ending = []
    while isinstance(last, Table) and last.value.body:
        key, item = last.value.body[-1]
        if key is None:
            ending.append(last.value.body.pop())
        else:
            last = item  # that may be a table itself
    yield
    table.value.body.extend(reversed(ending))


def _rewrite(path: Path, change: Callable[[tomlkit.TOMLDocument], str | None]) -> None:
    """Apply `change`, which may return lines to put before everything; the file is replaced whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path):
            if path.exists():
                read_table(path)
            text = path.read_bytes().decode() if path.exists() else BEGINNING
            document = tomlkit.parse(text.replace("\r\n", "\n"))
            before = change(document) or ""
            changed = (before + tomlkit.dumps(document)).strip("\n") + "\n"
            replace_file(path, (changed.replace("\n", "\r\n") if "\r\n" in text else changed).encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", hint="--config takes another file") from None
