"""The user's editor: which one, and what comes back from it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from specdec_cli.chat.editor import edit_text, find_editor
from specdec_cli.errors import UsageError


def script(folder: Path, body: str) -> list[str]:
    """An editor that does `body` with its file "$1"."""
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return [str(path)]


def test_visual_wins_over_editor_and_may_have_arguments() -> None:
    assert find_editor({"VISUAL": "code --wait", "EDITOR": "vi"}) == ["code", "--wait"]
    assert find_editor({"EDITOR": "'my editor'"}) == ["my editor"]
    assert find_editor({"VISUAL": ""}) == []
    with pytest.raises(UsageError, match="cannot be parted"):
        find_editor({"EDITOR": "'"})


def test_the_text_comes_back_without_its_last_newline(tmp_path: Path) -> None:
    assert edit_text(script(tmp_path, 'echo " more [/b] é" >>"$1"'), "one\ntwo") == "one\ntwo\n more [/b] é"
    assert edit_text(script(tmp_path, "true"), "one") == "one"
    assert edit_text(script(tmp_path, "true"), "") == ""


@pytest.mark.parametrize(
    ("body", "reason"),
    [("exit 3", "ended with 3"), ('rm "$1"', "left no text"), ("printf '\\377' >\"$1\"", "left no text")],
)
def test_an_editor_that_fails_is_told(body: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        edit_text(script(tmp_path, body), "one")


def test_ctrl_c_in_the_editor_is_the_editors(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert edit_text(script(tmp_path, 'kill -INT $PPID; echo two >"$1"'), "one") == "two"
    assert signal.getsignal(signal.SIGINT) is before
