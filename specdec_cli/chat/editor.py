"""The user's own editor, for a text that is too long for a line."""

from __future__ import annotations

import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from specdec_cli.errors import UsageError


def find_editor(environment: Mapping[str, str]) -> list[str]:
    """The command that edits a file, empty if the user has not named one.

    Raises:
        UsageError: what is named cannot be parted into words.
    """
    named = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        return shlex.split(named)
    except ValueError:
        raise UsageError(f"the editor {named} cannot be parted into words", hint="see VISUAL and EDITOR") from None


def edit_text(editor: list[str], text: str) -> str:
    """What becomes of `text` in the editor, without the newline that ends its last line.

    Raises:
        UsageError: the editor cannot be started, failed, or left something else than text.
    """
    with tempfile.TemporaryDirectory(prefix="specdec-") as folder:
        file = Path(folder) / "message.md"
        file.write_text(f"{text}\n" if text else "", "utf-8")
        _run([*editor, str(file)])
        try:
            return file.read_text("utf-8").removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{editor[0]} left no text: {error}", hint="nothing has changed") from error


def _run(command: list[str]) -> None:
    """Run `command` on this terminal, where Ctrl-C is its own."""
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise UsageError(
            f"cannot start the editor {command[0]}: {error.strerror}", hint="see VISUAL and EDITOR"
        ) from error
    finally:
        signal.signal(signal.SIGINT, previous)
    if code:
        raise UsageError(f"the editor {command[0]} ended with {code}", hint="nothing has changed")
