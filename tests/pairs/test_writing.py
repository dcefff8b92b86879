from __future__ import annotations

import os
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.errors import UsageError
from specdec_cli.pairs.writing import add_pair, remove_pair, set_default, to_toml

COMMENTED = """\
# My pairs.
default = "a" # until the new disk comes

# The small one.
[pairs.a]
target = "/a.gguf" # quantised by me
draft = "lookup"

# The big one.
[pairs."b c"]
target = { repo = "o/r",   file = "b.gguf" } # odd   spacing
"""
ENTRY: dict[str, Any] = {"target": "/new.gguf", "draft": {"repo": "o/r", "file": "d.gguf"}, "draft_tokens": 5}
SHAPES = [
    "",
    COMMENTED,
    'pairs.a = { target = "/a" }\n',
    '[pairs]\na = { target = "/a" }\n',
    'pairs = { a = { target = "/a" } }\n',
    '[pairs.a]\ntarget = "/a"\n[pairs.a.draft]\nrepo = "o/r"\nfile = "f"\n',
    '[pairs]\na.target = "/a"\na.draft = "lookup"\n',
    "[pairs]\n",
    "# only a comment, without an end",
]
"""Ways to write a models.toml."""
NEXT = '\n# The next one.\n[pairs.next]\ntarget = "/next"\n'
NESTED = [
    f'[pairs.a]\ntarget = "/a"\n[pairs.a.draft]\nrepo = "o/r"\nfile = "f"\n{NEXT}',
    f'[pairs.a]\ntarget = "/a"\n[pairs.a.tuned]\ndate = "x"\n{NEXT}',
    f'{NEXT}[pairs]\na.target = "/a"\na.draft = "lookup"\n',
    '[pairs.a.tuned]\ndate = "x"\n[pairs.next]\ntarget = "/next"\n[pairs.a]\ntarget = "/a"\n',
]
"""A pair that is spread over several tables, before or around another one."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "models.toml"


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("text", SHAPES)
def test_adding_leaves_every_line_as_it_was(table: Path, text: str) -> None:
    table.write_text(text, "utf-8")
    before = tomllib.loads(text)
    add_pair(table, "new one", ENTRY, replace=False)
    assert _read(table)["pairs"] == {**before.get("pairs", {}), "new one": ENTRY}
    lines = table.read_text("utf-8").splitlines()
    if "pairs = {" not in text:
        assert [line for line in text.splitlines() if line in lines] == text.splitlines()


@pytest.mark.parametrize("text", SHAPES)
def test_what_is_added_and_removed_again_leaves_no_trace(table: Path, text: str) -> None:
    table.write_text(text, "utf-8")
    add_pair(table, "new one", ENTRY, replace=False)
    remove_pair(table, "new one")
    assert table.read_text("utf-8").split() == text.split()


def test_a_file_that_is_not_there_is_made_with_its_folder_and_a_word_about_it(tmp_path: Path) -> None:
    table = tmp_path / "some" / "where" / "models.toml"
    add_pair(table, "a", {"target": "/a"}, replace=False)
    assert table.read_text("utf-8").startswith("# Your own pairs for specdec.")
    assert _read(table) == {"pairs": {"a": {"target": "/a"}}}


def test_a_known_name_is_refused_and_replaced_only_when_asked_for(table: Path) -> None:
    table.write_text(COMMENTED, "utf-8")
    with pytest.raises(UsageError, match='has a pair named "a" already') as caught:
        add_pair(table, "a", ENTRY, replace=False)
    assert "--force" in caught.value.hint
    assert table.read_text("utf-8") == COMMENTED
    add_pair(table, "a", {"target": "/other.gguf"}, replace=True)
    assert _read(table)["pairs"]["a"] == {"target": "/other.gguf"}
    assert 'target = "/other.gguf" # quantised by me' in table.read_text("utf-8")
    assert list(_read(table)["pairs"]) == ["a", "b c"], "its place stays"


def test_removing_takes_that_pair_alone_and_a_default_that_names_it(table: Path) -> None:
    table.write_text(COMMENTED, "utf-8")
    remove_pair(table, "a")
    assert _read(table) == {"pairs": {"b c": {"target": {"repo": "o/r", "file": "b.gguf"}}}}
    text = table.read_text("utf-8")
    assert "# My pairs." in text
    assert 'target = { repo = "o/r",   file = "b.gguf" } # odd   spacing' in text


def test_the_default_is_changed_in_its_line_or_put_before_everything(table: Path) -> None:
    table.write_text(COMMENTED, "utf-8")
    set_default(table, "b c")
    assert table.read_text("utf-8") == COMMENTED.replace('default = "a"', 'default = "b c"')
    rest = COMMENTED.replace('default = "a" # until the new disk comes\n', "")
    table.write_text(rest, "utf-8")
    set_default(table, "a")
    assert table.read_text("utf-8") == f'default = "a"\n\n{rest}'


def test_windows_line_ends_stay(table: Path) -> None:
    table.write_bytes(COMMENTED.replace("\n", "\r\n").encode())
    add_pair(table, "new", ENTRY, replace=False)
    content = table.read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n") > 12


@pytest.mark.parametrize("damaged", ["[pairs.a\n", 'defualt = "x"\n', '[pairs.a]\ndraft = "x"\n'])
def test_a_damaged_file_is_refused_and_left_untouched(table: Path, damaged: str) -> None:
    table.write_text(damaged, "utf-8")
    with pytest.raises(UsageError, match=str(table)):
        add_pair(table, "n", ENTRY, replace=True)
    with pytest.raises(UsageError, match=str(table)):
        set_default(table, "n")
    with pytest.raises(UsageError, match=str(table)):
        remove_pair(table, "a")
    assert table.read_text("utf-8") == damaged


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are others there")
def test_a_link_stays_a_link_and_the_file_keeps_its_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.toml", tmp_path / "models.toml"
    real.write_text(COMMENTED, "utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    set_default(link, "b c")
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert _read(real)["default"] == "b c"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="cannot be written: Permission denied"):
        set_default(tmp_path / "models.toml", "a")


def test_a_place_that_can_hold_no_file_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written: ") as caught:
        set_default(tmp_path / "file" / "models.toml", "a")
    assert "\n" not in caught.value.message
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file"]


def test_replacing_a_pair_leaves_what_is_behind_it_where_it_is_and_lines_that_say_the_same(table: Path) -> None:
    table.write_text(COMMENTED, "utf-8")
    entry = _read(table)["pairs"]["a"] | {"threads": 2, "tuned": {"plain": 1.5}}
    add_pair(table, "a", entry, replace=True)
    added = 'draft = "lookup"\nthreads = 2\ntuned = {plain = 1.5}\n'
    assert table.read_text("utf-8") == COMMENTED.replace('draft = "lookup"\n', added)
    add_pair(table, "a", {"target": "/a.gguf"}, replace=True)
    assert table.read_text("utf-8") == COMMENTED.replace('draft = "lookup"\n', "")


@pytest.mark.parametrize("text", NESTED)
@pytest.mark.parametrize("draft", ["lookup", {"repo": "o/r", "file": "f"}])
def test_a_pair_of_several_tables_is_replaced_and_the_comment_on_the_next_one_stays(
    table: Path, text: str, draft: Any
) -> None:
    table.write_text(text, "utf-8")
    entry = {"target": "/a", "draft": draft, "threads": 2, "tuned": {"plain": 1.5}}
    add_pair(table, "a", entry, replace=True)
    assert _read(table)["pairs"] == {"a": entry, "next": {"target": "/next"}}
    assert (NEXT in text) == (NEXT.strip() in table.read_text("utf-8"))


def test_a_pair_can_be_seen_before_it_is_written() -> None:
    assert tomllib.loads(to_toml("b c", ENTRY)) == {"pairs": {"b c": ENTRY}}
