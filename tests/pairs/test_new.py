from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli.errors import ModelError, UsageError
from specdec_cli.pairs.new import to_entry


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user is, with two files."""
    for name in ("big.gguf", "small.gguf", "old.py", "with,comma.gguf"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_paths_are_written_whole_since_a_pair_is_used_in_any_folder(folder: Path) -> None:
    entry = to_entry("mine", "big.gguf", "small.gguf", 5, "fast")
    assert entry == {
        "target": str(folder / "big.gguf"),
        "draft": str(folder / "small.gguf"),
        "draft_tokens": 5,
        "notes": "fast",
    }


def test_what_is_not_said_is_not_written(folder: Path) -> None:
    assert to_entry("mine", "big.gguf", "lookup", None, "") == {"target": str(folder / "big.gguf"), "draft": "lookup"}


@pytest.mark.parametrize(
    ("draft", "written"),
    [
        ("none", "none"),
        ("text:old.py", "text:{}/old.py"),
        ("table:old.py", "table:{}/old.py"),
        ("lookup,small.gguf", "lookup,{}/small.gguf"),
        ("text:old.py, small.gguf", "text:{0}/old.py,{0}/small.gguf"),
        ("with,comma.gguf", "{}/with,comma.gguf"),
    ],
)
def test_every_drafter_of_the_command_line_can_be_kept(folder: Path, draft: str, written: str) -> None:
    assert to_entry("mine", "big.gguf", draft, None, "")["draft"] == written.format(folder)


def test_a_file_of_the_hub_is_written_as_its_repository_and_path() -> None:
    entry = to_entry("mine", "hub:Qwen/Qwen3-8B-GGUF/sub/x.gguf", "hub:o/r/y.gguf", "auto", "")
    assert entry["target"] == {"repo": "Qwen/Qwen3-8B-GGUF", "file": "sub/x.gguf"}
    assert entry["draft"] == {"repo": "o/r", "file": "y.gguf"}
    assert entry["draft_tokens"] == "auto"


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        ("none.gguf", "lookup"),
        ("big.gguf", "none.gguf"),
        ("big.gguf", "lookup,none.gguf"),
        ("big.gguf", "text:none.py"),
        (".", "lookup"),
        ("https://example.org/x.gguf", "lookup"),
    ],
)
def test_a_file_that_is_not_there_is_refused(target: str, draft: str) -> None:
    with pytest.raises(ModelError, match="does not exist"):
        to_entry("mine", target, draft, None, "")


@pytest.mark.parametrize("source", ["hub:x.gguf", "hub:o/r", "hub:o/r/x.bin", "hub:", "hub:/r/x.gguf"])
def test_half_an_address_of_the_hub_is_refused_with_its_form(source: str) -> None:
    with pytest.raises(UsageError, match=r"is not hub:OWNER/NAME/FILE\.gguf"):
        to_entry("mine", source, "lookup", None, "")


@pytest.mark.parametrize("draft", ["lookup,lookup", "lookup,none", "big.gguf,small.gguf", "lookup,hub:o/r/x.gguf"])
def test_drafters_that_cannot_work_together_are_refused(draft: str) -> None:
    with pytest.raises(UsageError, match=r"--draft"):
        to_entry("mine", "big.gguf", draft, None, "")


@pytest.mark.parametrize("name", ["", "-x", "a\nb", "a\x1b"])
def test_a_name_that_cannot_be_typed_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a pair cannot be named"):
        to_entry(name, "big.gguf", "lookup", None, "")


@pytest.mark.parametrize("target", ["lookup", "none"])
def test_a_drafter_is_no_target(target: str) -> None:
    with pytest.raises(UsageError, match="which is no model"):
        to_entry("mine", target, "lookup", None, "")
