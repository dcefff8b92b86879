"""What the models.toml of this repository promises about the pairs in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specdec_cli.pair_table import read_table, shipped_table
from specdec_cli.pairs.entries import Entry, ModelFile, list_entries

DOCS = Path(__file__).parents[2] / "docs" / "pairs.md"
GIGABYTE = 10**9


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    """The shipped pairs alone."""
    nothing = tmp_path_factory.mktemp("config") / "models.toml"
    nothing.touch()
    return list_entries(nothing)


def hub_files(entries: list[Entry]) -> list[ModelFile]:
    return [file for entry in entries for file in entry.files if file.hub is not None]


def test_there_are_ten_and_more_from_one_gigabyte_to_forty_eight(entries: list[Entry]) -> None:
    sizes = sorted(entry.size or 0 for entry in entries if entry.target.hub is not None)
    assert len(sizes) >= 10
    assert GIGABYTE <= sizes[0] < 2 * GIGABYTE
    assert 40 * GIGABYTE < sizes[-1] <= 48 * GIGABYTE


@pytest.mark.parametrize("family", ["qwen3", "qwen2.5-coder", "llama3", "gemma3", "smollm2", "ministral3", "gpt-oss"])
def test_each_family_that_people_use_is_there(entries: list[Entry], family: str) -> None:
    assert [entry for entry in entries if (entry.name or "").startswith(family)]


def test_each_file_says_its_size_and_licence(entries: list[Entry]) -> None:
    for file in hub_files(entries):
        assert file.size, file.name
        assert file.licence, file.name


def test_a_draft_model_is_smaller_than_its_target(entries: list[Entry]) -> None:
    for entry in entries:
        if entry.draft is not None:
            assert (entry.draft.size or 0) < (entry.target.size or 0) / 2, entry.name


def test_a_file_that_several_pairs_share_is_described_alike(entries: list[Entry]) -> None:
    known: dict[tuple[str, str], ModelFile] = {}
    for file in hub_files(entries):
        assert file.hub
        assert known.setdefault((file.hub.repo, file.hub.file), file) == file


def test_a_pinned_revision_is_a_commit_and_comes_with_a_hash(entries: list[Entry]) -> None:
    for file in hub_files(entries):
        assert file.hub
        if file.hub.revision is not None:
            assert re.fullmatch("[0-9a-f]{40}", file.hub.revision), file.name
            assert file.hub.sha256, file.name


def test_the_docs_say_where_each_file_was_seen(entries: list[Entry]) -> None:
    lines = DOCS.read_text("utf-8").splitlines()
    for file in hub_files(entries):
        assert file.hub
        line = next(line for line in lines if line.startswith(f"| {file.hub.file} |"))
        assert f"https://huggingface.co/{file.hub.repo})" in line
        assert f"| {file.size:,} | {file.licence} |" in line
        assert (f"`{file.hub.sha256[:12]}…`" if file.hub.sha256 else "not pinned") in line
        assert re.search(r"\| (address|listed)[^|]*\|$", line)


def test_each_pair_has_notes(entries: list[Entry]) -> None:
    assert all(entry.notes for entry in entries)
    assert read_table(shipped_table()).default == "smollm2"
