"""What is known of a pair before its files are opened: what they are, how big, whether they are here and would fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from specdec_cli.catalog import (
    HubFile,
    NgramFile,
    Pair,
    PredictedText,
    Source,
    is_here,
    locate,
    parts_of,
    to_draft,
    to_hub_file,
)
from specdec_cli.llama.machine import memory
from specdec_cli.pair_list import Catalog, own_table, read_catalog
from specdec_cli.placing_keys import PLACING_KEYS

SETTINGS: Final = ("rule", "draft_temperature", "threads", "draft_threads", "batch_size", *PLACING_KEYS)
"""What a pair may say of how it runs besides the draft length."""
SHARE_ON_TOP: Final = 0.1
BYTES_ON_TOP: Final = 500_000_000
"""What caches at the default context and the computation add to the files, roughly; `specdec models check` reckons."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file that a pair names. `path` is None in a package that is not installed; `size` is bytes, if known.

    `origin` is the repository or package it comes from, empty for a file of the user's own.
    """

    name: str
    origin: str
    path: Path | None
    hub: HubFile | None
    size: int | None
    licence: str | None

    @property
    def here(self) -> bool:
        """Whether it is on this machine, all parts of it."""
        return self.path is not None and is_here(self.path)


@dataclass(frozen=True, slots=True)
class Entry:
    """A pair with the models.toml that names it; both are None for files given by hand. `drafters` are in order.

    `settings` are those of `SETTINGS` that it says, and `tuned` what `specdec tune` measured.
    """

    name: str | None
    table: Path | None
    own: bool
    default: bool
    target: ModelFile
    draft: ModelFile | None
    drafters: tuple[str, ...]
    draft_tokens: int | str | None
    notes: str
    settings: Mapping[str, int | float | str] = field(default_factory=dict)
    tuned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> tuple[ModelFile, ...]:
        """The model files: the target's, then the draft's if it has one."""
        return (self.target,) if self.draft is None else (self.target, self.draft)

    @property
    def size(self) -> int | None:
        """Bytes of all model files; None if one is not known."""
        sizes = [each.size for each in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def missing(self) -> int | None:
        """Bytes of the model files that are not here; None if one is not known."""
        sizes = [each.size for each in self.files if not each.here]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def fits(self) -> bool | None:
        """Whether it can run in this machine's memory, roughly; None if that is not known, as of workers' memory."""
        machine, size = memory(), self.size
        if machine is None or size is None or self.settings.get("rpc"):
            return None
        return size * (1 + SHARE_ON_TOP) + BYTES_ON_TOP <= machine


def list_entries(config: Path | None) -> list[Entry]:
    """All pairs, in the order of their tables; `config` replaces the user's own models.toml.

    Raises:
        UsageError: a models.toml is wrong.
    """
    catalog = read_catalog(config)
    return [_to_entry(catalog, name, config) for name in catalog.pairs]


def find_entry(name: str | None, config: Path | None) -> Entry:
    """The pair `name`, or the default pair.

    Raises:
        UsageError: no such pair, or a models.toml is wrong.
    """
    catalog = read_catalog(config)
    return _to_entry(catalog, catalog.find(name)[0], config)


def describe_files(pair: Pair) -> Entry:
    """Files given by hand as an entry."""
    draft = None if pair.draft_model is None else _own_file(pair.draft_model)
    drafters = tuple(label(each) for each in pair.drafters)
    return Entry(None, None, True, False, _own_file(pair.target), draft, drafters, pair.draft_tokens, "")


def _to_entry(catalog: Catalog, name: str, config: Path | None) -> Entry:
    _, table, value = catalog.find(name)
    folder, draft = table.path.parent, value.get("draft", "none")
    if isinstance(draft, str):
        sources = Pair(Path(), to_draft(draft, folder))
        model, drafters = sources.draft_model, tuple(label(each) for each in sources.drafters)
        file = None if model is None else _own_file(model)
    else:
        file, drafters = _to_file(draft, folder), (draft["file"].rpartition("/")[2],)
    return Entry(
        name=name,
        table=table.path,
        own=table.path == own_table(config),
        default=name == catalog.default,
        target=_to_file(value["target"], folder),
        draft=file,
        drafters=drafters,
        draft_tokens=value.get("draft_tokens"),
        notes=value.get("notes", ""),
        settings={key: value[key] for key in SETTINGS if key in value},
        tuned=value.get("tuned", {}),
    )


def _to_file(source: str | dict[str, Any], folder: Path) -> ModelFile:
    path = locate(source, folder)
    if isinstance(source, str):
        return _own_file(folder / source if path is None else path)
    return ModelFile(
        name=source["file"].rpartition("/")[2],
        origin=source.get("repo") or source["package"],
        path=path,
        hub=to_hub_file(source) if "repo" in source else None,
        size=source.get("size") if path is None or not is_here(path) else _bytes(path),
        licence=source.get("licence"),
    )


def _own_file(path: Path) -> ModelFile:
    return ModelFile(path.name, "", path, None, _bytes(path) if is_here(path) else None, None)


def _bytes(path: Path) -> int:
    return sum(part.stat().st_size for part in parts_of(path))


def label(source: Source) -> str:
    """How lists call a drafter."""
    if isinstance(source, PredictedText | NgramFile):
        return f"{'text' if isinstance(source, PredictedText) else 'table'}:{source.path.name}"
    return source.name if isinstance(source, Path) else source
