"""models.toml to pairs: which files a name stands for, and where they are on this machine."""

from __future__ import annotations

import importlib.util
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

import platformdirs

from specdec_cli.errors import ModelError, UsageError
from specdec_cli.limits import LONGEST_DRAFT, DraftTokens

DraftKind = Literal["lookup", "none"]
TEXT_PREFIX: Final = "text:"
PAIR_KEYS: Final = ("target", "draft", "draft_tokens", "notes")
TOP_KEYS: Final = ("default", "pairs")


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
    tables = [_read(_shipped())]
    own = config or platformdirs.user_config_path("specdec", appauthor=False) / "models.toml"
    if config is not None or own.exists():
        tables.append(_read(own))
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


@dataclass(frozen=True, slots=True)
class _Table:
    path: Path
    default: str | None
    pairs: dict[str, dict[str, Any]]


def _shipped() -> Path:
    """The models.toml of this installation: inside the package, or beside it in a source tree."""
    packaged = Path(str(files("specdec_cli"))) / "models.toml"
    return packaged if packaged.exists() else packaged.parent.parent / "models.toml"


def _read(path: Path) -> _Table:
    try:
        text = path.read_text("utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="--config takes a models.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from None
    check = _Check(path, text)
    check.keys(data, TOP_KEYS, ())
    check.that(isinstance(data.get("default", ""), str), "default", (), "must be the name of a pair")
    check.that(isinstance(data.get("pairs", {}), dict), "pairs", (), "must be a table of pairs")
    for name, entry in data.get("pairs", {}).items():
        check.pair(name, entry)
    return _Table(path, data.get("default"), data.get("pairs", {}))


@dataclass(frozen=True, slots=True)
class _Check:
    """Complaints about one file, each with the line that it is about. `where` are the names of the tables around."""

    path: Path
    text: str

    def pair(self, name: str, entry: Any) -> None:
        where = ("pairs", name)
        self.that(isinstance(entry, dict), name, ("pairs",), "must be a table")
        self.keys(entry, PAIR_KEYS, where)
        self.that("target" in entry, name, ("pairs",), 'has no "target"')
        for key in ("target", "draft"):
            self.source(entry.get(key, ""), key, where)
        length = entry.get("draft_tokens", 0)
        valid = length == "auto" or (type(length) is int and 0 <= length <= LONGEST_DRAFT)
        self.that(valid, "draft_tokens", where, f'must be "auto" or a whole number in 0..{LONGEST_DRAFT}')
        self.that(isinstance(entry.get("notes", ""), str), "notes", where, "must be text")

    def source(self, source: Any, key: str, where: tuple[str, ...]) -> None:
        if isinstance(source, str):
            return
        self.that(
            isinstance(source, dict), key, where, "must be a path, or a table with a package or a repo, and a file"
        )
        kind = "repo" if "repo" in source else "package"
        self.keys(source, (kind, "file"), (*where, key))
        whole = all(isinstance(source.get(each), str) for each in (kind, "file"))
        self.that(whole, key, where, f'needs "{kind}" and "file", both text')

    def keys(self, table: dict[str, Any], allowed: tuple[str, ...], where: tuple[str, ...]) -> None:
        for key in table:
            self.that(key in allowed, key, where, f"is not a known key; known are {', '.join(allowed)}")

    def that(self, holds: bool, key: str, where: tuple[str, ...], complaint: str) -> None:
        if not holds:
            table = f" in [{'.'.join(where)}]" if where else ""
            raise UsageError(f'{self.path}:{self._line((*where, key))}: "{key}"{table} {complaint}')

    def _line(self, wanted: tuple[str, ...]) -> int:
        """The line that spells `wanted`, or the most of its beginning that any line does; 1 if none does."""
        found, longest = 1, 0
        table: tuple[str, ...] = ()
        for number, line in enumerate(self.text.splitlines(), 1):
            if line.lstrip().startswith("["):
                names = table = _names(line)
            else:
                names = (*table, *_names(line.partition("=")[0] + "= 0"))
            if longest < len(names) and names == wanted[: len(names)]:
                found, longest = number, len(names)
        return found


def _names(statement: str) -> tuple[str, ...]:
    """The names that one statement of TOML goes through, outermost first; none if it is not a whole statement."""
    try:
        node: Any = tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return ()
    names: list[str] = []
    while isinstance(node, dict) and node:
        name, node = next(iter(node.items()))
        names.append(name)
    return tuple(names)
