"""The history file, and text that a terminal in another encoding sends."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.history import History

from specdec_cli.chat.keys import history_path, open_history, whole


def lines(history: History) -> list[str]:
    return list(history.load_history_strings())


def test_what_was_typed_is_there_the_next_time_latest_first(tmp_path: Path) -> None:
    path = tmp_path / "state" / "chat_history"
    for text in ("one", "two\nlines", "+ three"):
        open_history(path).append_string(text)
    assert lines(open_history(path)) == ["+ three", "two\nlines", "one"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_damaged_history_loses_nothing_but_itself(tmp_path: Path) -> None:
    path = tmp_path / "chat_history"
    path.write_bytes(b"\xff\x00garbage\n+\xff\n")
    history = open_history(path)
    history.append_string("\udcff half")
    assert lines(open_history(path))[0] == "\ufffd half"


def test_where_nothing_can_be_written_a_run_has_its_own_history(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = open_history(tmp_path / "file" / "chat_history")
    history.append_string("one")
    assert history.get_strings() == ["one"]


def test_a_full_disk_costs_the_history_alone(tmp_path: Path) -> None:
    history = open_history(tmp_path / "chat_history")
    (tmp_path / "chat_history").unlink()
    (tmp_path / "chat_history").mkdir()
    history.append_string("one")


def test_halves_of_characters_become_one_replacement_each() -> None:
    assert whole("a\udcff é") == "a\ufffd é"


def test_the_history_lies_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_path().name == "chat_history"
    assert "specdec" in history_path().parts
