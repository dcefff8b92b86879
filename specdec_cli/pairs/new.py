"""A pair given on the command line, as a models.toml writes it down."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from specdec_cli.catalog import TABLE_PREFIX, TEXT_PREFIX, expanded, is_here, to_draft
from specdec_cli.errors import ModelError, UsageError
from specdec_cli.limits import DraftTokens

HUB_PREFIX: Final = "hub:"
WORDS: Final = ("lookup", "none")


def to_entry(name: str, target: str, draft: str, draft_tokens: DraftTokens | None, notes: str) -> dict[str, Any]:
    """What to write for the pair `name`; files in whole paths, for it may be used in any folder.

    Raises:
        UsageError: the name cannot be typed, or a source is none that a models.toml could hold.
        ModelError: a file is not there.
    """
    if not name or not name.isprintable() or name.startswith("-"):
        raise UsageError(f'a pair cannot be named "{name}"', hint="letters, digits, dots and dashes are best")
    if target in WORDS:
        raise UsageError(f'--target is "{target}", which is no model', hint="give a GGUF file")
    entry: dict[str, Any] = {"target": _to_source(target, "target"), "draft": _to_drafters(draft)}
    if draft_tokens is not None:
        entry["draft_tokens"] = draft_tokens
    return entry | ({"notes": notes} if notes else {})


def _to_drafters(draft: str) -> str | dict[str, str]:
    if "," not in draft or expanded(Path(draft)).exists():
        return _to_source(draft, "draft")
    to_draft(draft, Path())  # refuses drafters that cannot work together
    parts = [_to_source(part.strip(), "draft") for part in draft.split(",")]
    if not all(isinstance(part, str) for part in parts):
        raise UsageError(
            f"--draft {draft}: a file of the hub drafts alone", hint="fetch it first, then give its path in the chain"
        )
    return ",".join(str(part) for part in parts)


def _to_source(source: str, role: str) -> str | dict[str, str]:
    if source in WORDS:
        return source
    if source.startswith(HUB_PREFIX):
        return _to_hub_source(source, role)
    prefix = next((each for each in (TEXT_PREFIX, TABLE_PREFIX) if role == "draft" and source.startswith(each)), "")
    path = expanded(Path(source.removeprefix(prefix))).absolute()
    if not is_here(path):
        hint = "check the path" if prefix else "give a GGUF file, or hub:OWNER/NAME/FILE"
        raise ModelError(f"{role} {prefix}{path} does not exist", hint=hint)
    return f"{prefix}{path}"


def _to_hub_source(source: str, role: str) -> dict[str, str]:
    owner, _, rest = source.removeprefix(HUB_PREFIX).partition("/")
    repository, _, file = rest.partition("/")
    if not (owner and repository and file.endswith(".gguf")):
        raise UsageError(f"--{role} {source} is not hub:OWNER/NAME/FILE.gguf")
    return {"repo": f"{owner}/{repository}", "file": file}
