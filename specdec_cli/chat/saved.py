"""Conversations in files: messages, settings and the position of the noise, so that one goes on as it would have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from specdec_cli.errors import UsageError
from specdec_cli.files import replace_file
from specdec_cli.llama.chat_template import Message

KIND: Final = "specdec session"
VERSION: Final = 1
ROLES: Final = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Saved:
    """What is kept of a chat. `settings` holds what differs from the defaults, by name; the seed is one of them.

    `turn` is how many answers were begun: the position of the noise. `target` is the model's file name.
    """

    messages: Sequence[Message]
    settings: Mapping[str, Any]
    turn: int
    target: str


def has_chat(path: Path) -> bool:
    """Whether there is something in `path`: one that is missing or empty can become a session."""
    return path.exists() and not (path.is_file() and path.stat().st_size == 0)


def load(path: Path) -> Saved:
    """The chat that is kept in `path`.

    Raises:
        UsageError: the file cannot be read, is something else, is damaged, or of a newer specdec.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"session {path} is not a file")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read session {path}: {error.strerror or error}") from error
    return _to_saved(_parse(content, path), path)


def save(path: Path, saved: Saved) -> None:
    """Keep `saved` in `path`, in the place of a chat that may be there.

    Raises:
        UsageError: it cannot be written, or what is there is not one that `load` takes; that stays as it was.
    """
    if has_chat(path):
        load(path)
    try:
        replace_file(path, to_bytes(saved), private=True)
    except OSError as error:
        raise UsageError(f"cannot write session {path}: {error.strerror or error}") from error


def to_bytes(saved: Saved) -> bytes:
    """The content of a file: JSON, for people to read too."""
    content = {
        "kind": KIND,
        "version": VERSION,
        "target": saved.target,
        "turn": saved.turn,
        "settings": dict(saved.settings),
        "messages": list(saved.messages),
    }
    return (json.dumps(content, ensure_ascii=False, indent=1, default=str) + "\n").encode("utf-8", "replace")


def _parse(content: bytes, path: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        damaged = KIND.encode() in content[:200]
        raise _refusal(path, "is damaged" if damaged else f"is not a {KIND}") from error
    if not isinstance(parsed, dict) or parsed.get("kind") != KIND:
        raise _refusal(path, f"is not a {KIND}")
    version = parsed.get("version")
    if isinstance(version, int) and version > VERSION:
        raise UsageError(f"session {path} was written by a newer specdec", hint="update specdec, or name another file")
    if version != VERSION:
        raise _refusal(path, "is damaged: it has no version")
    return parsed


def _to_saved(parsed: dict[str, Any], path: Path) -> Saved:
    settings, messages, turn = parsed.get("settings"), parsed.get("messages"), parsed.get("turn")
    target = parsed.get("target")
    if not isinstance(turn, int) or isinstance(turn, bool) or not 0 <= turn < 2**63:
        raise _refusal(path, "is damaged: its turn is not a number")
    if not isinstance(settings, dict) or not isinstance(target, str):
        raise _refusal(path, "is damaged: it has no settings, or no target")
    if not isinstance(messages, list) or not all(_is_message(each) for each in messages):
        raise _refusal(path, "is damaged: its messages are not messages")
    roles = [each["role"] for each in messages]
    turns = roles[1:] if roles[:1] == ["system"] else roles
    if turns != ["user", "assistant"] * (len(turns) // 2):
        raise _refusal(path, "is damaged: a question and its answer do not take turns")
    return Saved([{"role": each["role"], "content": each["content"]} for each in messages], settings, turn, target)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in ROLES and isinstance(value.get("content"), str)


def _refusal(path: Path, reason: str) -> UsageError:
    return UsageError(f"{path} {reason}", hint="it stays as it is; name another file")
