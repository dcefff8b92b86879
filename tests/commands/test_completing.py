"""What Tab completes in a shell, asked as bash asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from specdec_cli.cli import run
from specdec_cli.commands.completing import drafters, pair_names

Complete = Callable[[str], list[str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_, **__: tmp_path)
    (tmp_path / "models.toml").write_text('[pairs.smooth]\ntarget = "x.gguf"\n')
    return tmp_path


@pytest.fixture
def complete(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """What bash is offered at the end of a line."""

    def ask(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_SPECDEC_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        run([])
        out, err = capsys.readouterr()
        assert err == ""
        return out.split()

    return ask


def test_commands_and_options_are_completed(complete: Complete) -> None:
    assert complete("specdec gen") == ["generate"]
    assert "check" in complete("specdec models ")
    assert complete("specdec generate --draft-te") == ["--draft-temperature"]


def test_words_of_an_option_are_completed(complete: Complete) -> None:
    assert complete("specdec generate -d lo") == ["lookup"]
    assert complete("specdec generate --rule ") == ["token", "block", "coupled"]
    assert complete("specdec generate --flash-attn o") == ["on", "off"]


def test_names_of_pairs_are_completed_own_ones_too(complete: Complete) -> None:
    assert complete("specdec doctor smoo") == ["smooth"]
    assert complete("specdec doctor sm") == ["smollm2", "smollm2-1.7b", "smooth"]
    assert complete("specdec generate --pair smoo") == ["smooth"]
    assert complete("specdec models show smoo") == ["smooth"]


def test_files_are_left_to_the_shell(complete: Complete) -> None:
    assert complete("specdec generate --memory xyz") == []
    assert complete("specdec generate -f xyz") == []


@pytest.mark.parametrize(("line", "code"), [("specdec gen", 0), ("specdec generate --memory x", 1)])
def test_fish_is_told_by_the_exit_code_whether_files_belong_there(
    line: str, code: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SPECDEC_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "is-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    assert run([]) == code


def test_a_broken_models_toml_completes_what_ships_and_says_nothing(complete: Complete, home: Path) -> None:
    (home / "models.toml").write_text("broken")
    assert complete("specdec doctor sm") == ["smollm2", "smollm2-1.7b"]
    assert pair_names("no such") == []


def test_drafters_are_words_and_files_behind_the_last_comma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("lion.gguf", "models/lynx.gguf", "notes.txt"):
        (tmp_path / name).touch()
    assert drafters("") == ["lookup", "none", "text:", "table:", "lion.gguf", "models/"]
    assert drafters("l") == ["lookup", "lion.gguf"]
    assert drafters("models/") == ["models/lynx.gguf"]
    assert drafters("lookup,l") == ["lookup,lookup", "lookup,lion.gguf"]
    assert drafters("nowhere/") == []


def test_files_of_the_home_folder_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "lynx.gguf").touch()
    assert drafters("~/l") == ["~/lynx.gguf"]
    assert drafters("~nobody-of-that-name/l") == []


def test_what_may_not_be_looked_at_completes_nothing_and_says_nothing(
    complete: Complete, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.chdir(home)
    (home / "lion").mkdir()
    monkeypatch.setattr(Path, "is_dir", refused)
    assert complete("specdec generate -d l") == ["lookup"]
    (home / "models.toml").unlink()
    (home / "models.toml").symlink_to("models.toml")  # in a circle: to whoever looks it is as good as locked
    assert complete("specdec doctor sm") == ["smollm2", "smollm2-1.7b"]
