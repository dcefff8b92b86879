"""Writing what was found into the user's own models.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from specdec_cli.catalog import Pair, locate, to_draft
from specdec_cli.errors import UsageError
from specdec_cli.limits import DEFAULT_RULE
from specdec_cli.pair_list import own_table, read_catalog
from specdec_cli.pairs.new import to_entry
from specdec_cli.pairs.writing import add_pair
from specdec_cli.placing_keys import to_placing_keys
from specdec_cli.settings import DEFAULT_BATCH, Placing
from specdec_cli.tune.finding import Finding
from specdec_cli.tune.setting import Chain, to_words, whole

WORDS: Final = ("auto", "same")
"""Draft temperatures that are no number."""
DIGITS: Final = 3
"""Behind the point: what was measured is not known better."""


def to_keys(
    finding: Finding, own: Chain, usable_cpus: int, placing: Placing, *, date: str, machine: str
) -> dict[str, Any]:
    """The keys of a pair that `finding` changes; None takes one out, since the default is best.

    `own` are the drafters that the pair has now. A pair that had better not draft keeps them. It was measured with the
    models where `placing` puts them.
    """
    setting, drafts = finding.setting, finding.verdict == "speculate"
    temperature = setting.draft_temperature
    return {
        **({"draft": to_words(whole(setting.chain))} if drafts and setting.chain != own else {}),
        "draft_tokens": _unless("auto", setting.draft_tokens),
        "rule": _unless(DEFAULT_RULE, setting.rule),
        "draft_temperature": _unless("auto", temperature if temperature in WORDS else float(temperature)),
        "threads": _unless(usable_cpus, setting.threads),
        "draft_threads": _unless(setting.threads, setting.draft_threads),
        "batch_size": _unless(DEFAULT_BATCH, setting.batch_size),
        **to_placing_keys(placing),
        "tuned": _to_tuned(finding, date, machine),
    }


def _unless(default: Any, value: Any) -> Any:
    return None if value == default else value


def _to_tuned(finding: Finding, date: str, machine: str) -> dict[str, Any]:
    assert finding.ratio is not None
    figures = {name: round(value, DIGITS) for name, value in asdict(finding.ratio).items()}
    return {"date": date, "machine": machine, **figures, **({"reason": finding.reason} if finding.reason else {})}


class Place:
    """Where a tuning is kept: the pair `name` of the user's own table, or of `config` in its place.

    A pair given by hand, or tuned under another name, becomes a new one. Made before anything is measured, so that
    what cannot be written is known then.

    Raises:
        UsageError: it cannot be written, or has a pair of a name that should be new.
        ModelError: a file of the pair is not there.
    """

    def __init__(
        self, pair: Pair, config: Path | None, save_as: str | None, *, by_hand: bool, dry_run: bool = False
    ) -> None:
        catalog = read_catalog(config)
        self.path = own_table(config)
        self.name = save_as or pair.name or ""
        is_own = self.name in catalog.pairs and catalog.pairs[self.name][0].path == self.path
        if save_as is not None and is_own:
            raise UsageError(f'{self.path} has a pair named "{save_as}" already', hint="--save-as takes a new name")
        if by_hand:
            self.entry = to_entry(self.name, str(pair.target), to_words(pair.drafters), None, "")
        else:
            _, table, entry = catalog.find(pair.name)
            self.entry = dict(entry) if table.path == self.path else _copied(entry, table.path.parent)
        if not dry_run:
            _check_writable(self.path)

    def entry_with(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """The pair with `keys` as `to_keys` gives them."""
        return {key: value for key, value in {**self.entry, **keys}.items() if value is not None}

    def save(self, keys: Mapping[str, Any]) -> None:
        """Write the pair with `keys`; the rest of the file stays as it is.

        Raises:
            UsageError: the file became wrong, or cannot be written.
        """
        add_pair(self.path, self.name, self.entry_with(keys), replace=True)


def _copied(entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A pair of a table in `folder` as it can stand in another: its paths whole."""
    copy = dict(entry)
    if isinstance(copy["target"], str):
        copy["target"] = str(locate(copy["target"], folder))
    if isinstance(copy.get("draft"), str) and copy["draft"] != "none":
        copy["draft"] = to_words(Pair(Path(), to_draft(copy["draft"], folder)).drafters)
    return copy


def _check_writable(path: Path) -> None:
    """It is replaced by a new file, so that its folder has to take one."""
    folder = next(each for each in path.resolve().parents if each.exists())
    for there in (folder, path):
        if there.exists() and not os.access(there, os.W_OK):
            hint = "--dry-run shows what it would say; --config takes another file"
            raise UsageError(f"{path} cannot be written: {there} is read-only", hint=hint)
