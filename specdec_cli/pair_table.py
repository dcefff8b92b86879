"""A models.toml as a table of pairs, every mistake in it told with its line."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from specdec_cli.core.sampling.ranges import RANGES
from specdec_cli.errors import UsageError
from specdec_cli.limits import LARGEST_BATCH, LONGEST_DRAFT, MOST_THREADS, RULES
from specdec_cli.placing_keys import PLACING_KEYS, faults

PAIR_KEYS: Final = (
    "target",
    "draft",
    "draft_tokens",
    "rule",
    "draft_temperature",
    "threads",
    "draft_threads",
    "batch_size",
    *PLACING_KEYS,
    "notes",
    "tuned",
)
COUNTS: Final = {"threads": MOST_THREADS, "draft_threads": MOST_THREADS, "batch_size": LARGEST_BATCH}
"""Keys that are whole numbers from 1, and the highest of each."""
TUNED_TEXTS: Final = ("date", "machine", "reason")
TUNED_NUMBERS: Final = ("plain", "speculative", "speed_up", "lowest", "highest")
"""What `specdec tune` writes down of its measurements: tokens a second, and how many times plain decoding."""
TOP_KEYS: Final = ("default", "pairs")
SOURCE_KEYS: Final = {
    "package": ("package", "file", "size", "licence"),
    "repo": ("repo", "file", "size", "licence", "revision", "sha256"),
}
"""What a table for a target or a draft may say, by the key that says which kind it is; the first two it must."""
REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Table:
    """A models.toml that was checked: the name of its default pair, and its pairs as they are written."""

    path: Path
    default: str | None
    pairs: dict[str, dict[str, Any]]


def shipped_table() -> Path:
    """The models.toml of this installation: inside the package, or beside it in a source tree."""
    packaged = Path(str(files("specdec_cli"))) / "models.toml"
    return packaged if packaged.exists() else packaged.parent.parent / "models.toml"


def read_table(path: Path) -> Table:
    """The checked table of `path`.

    Raises:
        UsageError: it cannot be read, is no TOML, or says what it must not; with the line.
    """
    try:
        text = path.read_text("utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="--config takes a models.toml") from None
    except (ValueError, RecursionError) as error:  # also of bytes, of digits without an end, and of deep nesting
        raise UsageError(f"{path} is not valid TOML: {error}") from None
    check = _Check(path, text)
    check.keys(data, TOP_KEYS, ())
    check.that(isinstance(data.get("default", ""), str), "default", (), "must be the name of a pair")
    check.that(isinstance(data.get("pairs", {}), dict), "pairs", (), "must be a table of pairs")
    for name, entry in data.get("pairs", {}).items():
        check.pair(name, entry)
    return Table(path, data.get("default"), data.get("pairs", {}))


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
        self.that(entry.get("rule", RULES[0]) in RULES, "rule", where, f"must be one of {', '.join(RULES)}")
        low, high, _ = RANGES["temperature"]
        given = entry.get("draft_temperature", "auto")
        valid = given in ("auto", "same") or (_is_number(given) and low <= given <= high)
        self.that(valid, "draft_temperature", where, f'must be "auto", "same" or a number in {low}..{high}')
        for key, most in COUNTS.items():
            count = entry.get(key, 1)
            self.that(type(count) is int and 1 <= count <= most, key, where, f"must be a whole number in 1..{most}")
        for key, complaint in faults(entry):
            self.that(False, key, where, complaint)
        self.that(isinstance(entry.get("notes", ""), str), "notes", where, "must be text")
        self.tuned(entry.get("tuned", {}), where)

    def tuned(self, tuned: Any, where: tuple[str, ...]) -> None:
        self.that(isinstance(tuned, dict), "tuned", where, "must be a table")
        inside = (*where, "tuned")
        self.keys(tuned, TUNED_TEXTS + TUNED_NUMBERS, inside)
        for key in TUNED_TEXTS:
            self.that(isinstance(tuned.get(key, ""), str), key, inside, "must be text")
        for key in TUNED_NUMBERS:
            figure = tuned.get(key, 0)
            self.that(_is_number(figure) and figure >= 0, key, inside, "must be a number from 0")

    def source(self, source: Any, key: str, where: tuple[str, ...]) -> None:
        if isinstance(source, str):
            return
        self.that(
            isinstance(source, dict), key, where, "must be a path, or a table with a package or a repo, and a file"
        )
        kind = "repo" if "repo" in source else "package"
        inside = (*where, key)
        self.keys(source, SOURCE_KEYS[kind], inside)
        whole = all(isinstance(source.get(each), str) for each in (kind, "file"))
        self.that(whole, key, where, f'needs "{kind}" and "file", both text')
        for word in ("licence", "revision"):
            self.that(isinstance(source.get(word, ""), str), word, inside, "must be text")
        size = source.get("size", 0)
        self.that(type(size) is int and size >= 0, "size", inside, "must be a number of bytes")
        self.that(_is(SHA256, source.get("sha256", "0" * 64)), "sha256", inside, "must be 64 small hexadecimal digits")
        if kind == "repo":
            self.that(_is(REPOSITORY, source["repo"]), "repo", inside, "must be OWNER/NAME")
            self.that(_stays_inside(source["file"]), "file", inside, "must be the path of a file in its repository")

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


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is(pattern: re.Pattern[str], text: Any) -> bool:
    return isinstance(text, str) and pattern.fullmatch(text) is not None


def _stays_inside(file: str) -> bool:
    """Whether `file` names something below the folder that it is joined to, on every system."""
    parts = file.replace("\\", "/").split("/")
    return all(part not in ("", ".", "..") for part in parts) and ":" not in file


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
