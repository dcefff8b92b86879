from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from specdec_cli.catalog import HubFile, place_of
from specdec_cli.downloads import fetch, transfers
from tests.downloads.fetched import CONTENT, FILE, HASH, OTHER, REPO, failure, names, part, pull
from tests.hub_server import COMMIT, OLDER, Hub


def test_a_file_comes_to_its_place_with_what_the_hub_says_of_it(hub: Hub) -> None:
    assert pull() == place_of(FILE)
    assert place_of(FILE).read_bytes() == CONTENT
    assert json.loads(place_of(FILE).with_name("toy-Q4_0.gguf.json").read_text()) == {
        "repo": REPO,
        "file": FILE.file,
        "revision": None,
        "commit": COMMIT,
        "sha256": HASH,
        "size": len(CONTENT),
    }
    assert names() == ["toy-Q4_0.gguf", "toy-Q4_0.gguf.json"]


def test_a_file_in_a_folder_keeps_its_folder(hub: Hub) -> None:
    hub.add(REPO, "Q8_0/toy.gguf", OTHER)
    path = pull(HubFile(REPO, "Q8_0/toy.gguf"))
    assert path.parts[-4:] == (*REPO.split("/"), "Q8_0", "toy.gguf")
    assert path.read_bytes() == OTHER


def test_what_is_whole_is_not_asked_for_again(hub: Hub) -> None:
    pull()
    hub.asked.clear()
    for source in (FILE, HubFile(REPO, FILE.file, COMMIT, HASH.upper())):
        assert pull(source) == place_of(FILE)
    assert hub.asked == []
    for _ in range(2):
        pull(HubFile(REPO, FILE.file, "main"))
    assert len(hub.asked) == 1, "what a pinned branch stands for is asked once"


def test_a_whole_file_needs_neither_the_hub_nor_its_package(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    pull()
    monkeypatch.delitem(sys.modules, "specdec_cli.downloads.transfers")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert pull() == place_of(FILE)


def test_without_the_package_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "specdec_cli.downloads.transfers")
    monkeypatch.delitem(sys.modules, "specdec_cli.downloads.hub")
    monkeypatch.delattr("specdec_cli.downloads.hub")
    monkeypatch.delattr("specdec_cli.downloads.transfers")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    error = failure()
    assert "huggingface_hub" in error.message
    assert error.hint == 'pip install "specdec-cli[hub]"'


def test_progress_goes_from_nothing_to_all(hub: Hub) -> None:
    told: list[tuple[str, float | None]] = []
    fetch(FILE, on_progress=lambda text, share: told.append((text, share)))
    shares = [share for _, share in told if share is not None]
    assert shares == sorted(set(shares))
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert all(text.startswith("toy-Q4_0.gguf ") for text, _ in told)


def test_a_long_name_leaves_room_for_a_bar_in_a_line(hub: Hub) -> None:
    told: list[str] = []
    source = HubFile(REPO, "Some-Model-Of-Many-Words-2.5-Instruct-UD-Q4_K_XL.gguf")
    hub.add(REPO, source.file, CONTENT)
    fetch(source, on_progress=lambda text, _: told.append(text))
    assert told[-1] == "Some-Model-Of-M…D-Q4_K_XL.gguf 0.00 of 0.00 GB"


def test_a_file_put_there_by_hand_is_accepted_if_it_is_the_one(hub: Hub) -> None:
    place_of(FILE).parent.mkdir(parents=True)
    place_of(FILE).write_bytes(CONTENT)
    assert pull() == place_of(FILE)
    assert hub.sent == 0
    hub.asked.clear()
    pull()
    assert hub.asked == [], "it is known now"


def test_a_file_put_there_by_hand_that_is_another_is_left_untouched(hub: Hub) -> None:
    place_of(FILE).parent.mkdir(parents=True)
    place_of(FILE).write_bytes(b"GGUF, but mine")
    error = failure()
    assert str(place_of(FILE)) in error.message
    assert place_of(FILE).read_bytes() == b"GGUF, but mine"


def test_a_file_that_was_fetched_and_cut_short_since_is_fetched_again(hub: Hub) -> None:
    os.truncate(pull(), 100)
    assert pull().read_bytes() == CONTENT


@pytest.mark.parametrize("record", ["", "{", "[]", "{}", '"text"', "null"])
def test_a_damaged_note_about_a_file_is_written_anew(hub: Hub, record: str) -> None:
    note = pull().with_name("toy-Q4_0.gguf.json")
    note.write_text(record)
    pull()
    assert hub.sent == len(CONTENT)
    assert json.loads(note.read_text())["sha256"] == HASH


def test_all_parts_of_a_split_model_come_with_one_share(hub: Hub) -> None:
    contents = {f"big-0000{part}-of-00003.gguf": CONTENT[part:] for part in (1, 2, 3)}
    for name, content in contents.items():
        hub.add(REPO, name, content)
    shares: list[float] = []
    source = HubFile(REPO, "big-00001-of-00003.gguf", None, sha256(CONTENT[1:]).hexdigest())
    path = fetch(source, on_progress=lambda _, share: shares.append(share or 0))
    assert path.name == "big-00001-of-00003.gguf"
    assert {name: path.with_name(name).read_bytes() for name in contents} == contents
    assert shares == sorted(set(shares))
    assert shares[-1] == 1.0
    path.with_name("big-00002-of-00003.gguf").unlink()
    hub.sent = 0
    pull(source)
    assert hub.sent == len(contents["big-00002-of-00003.gguf"])


def test_parts_are_all_of_the_commit_of_those_that_are_here(hub: Hub) -> None:
    sources = [HubFile(REPO, f"big-0000{part}-of-00002.gguf") for part in (1, 2)]
    for source in sources:
        hub.add(REPO, source.file, CONTENT, OLDER)
        hub.add(REPO, source.file, OTHER, "main", COMMIT)
    pull(replace(sources[0], revision=OLDER))
    place_of(sources[1]).unlink()
    pull(sources[0])
    assert [place_of(source).read_bytes() for source in sources] == [CONTENT, CONTENT]
    pull(replace(sources[1], revision=COMMIT))
    pull(sources[0])
    assert [place_of(source).read_bytes() for source in sources] == [CONTENT, CONTENT]


def test_parts_are_all_of_one_commit_even_if_the_branch_moves_meanwhile(hub: Hub) -> None:
    for number in (1, 2):
        hub.add(REPO, f"big-0000{number}-of-00002.gguf", CONTENT)
    pull(HubFile(REPO, "big-00001-of-00002.gguf"))
    assert [asked.split("/")[4] for asked in hub.asked if asked.startswith("HEAD")] == ["main", COMMIT]


@pytest.mark.parametrize(
    "source", [HubFile(REPO, "../../../../evil"), HubFile("..", "evil"), HubFile(REPO, "/tmp/evil")]
)
def test_a_models_toml_cannot_choose_a_place_outside_the_models(hub: Hub, source: HubFile) -> None:
    assert "no path inside" in failure(source).message
    assert hub.asked == []


def test_a_disk_that_is_too_small_is_told_before_anything_comes(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10_000))
    error = failure()
    assert str(place_of(FILE).parent) in error.message
    assert hub.sent == 0


def test_what_is_here_needs_no_space_again(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=len(CONTENT) - 5000))
    failure()
    place_of(FILE).write_bytes(CONTENT)
    pull()
    place_of(FILE).unlink()
    failure()
    place_of(FILE).with_name(f"{FILE.file}.{HASH[:16]}.part").write_bytes(CONTENT[:5000])
    assert pull().read_bytes() == CONTENT


def test_an_old_note_never_stands_beside_a_new_file(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    pull()
    hub.add(REPO, FILE.file, OTHER, OLDER)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transfers, "write_provenance", stop)
    with pytest.raises(KeyboardInterrupt):
        pull(HubFile(REPO, FILE.file, OLDER))
    assert place_of(FILE).read_bytes() == OTHER
    assert names() == [FILE.file]


def test_a_disk_that_fills_up_meanwhile_is_one_line_and_what_came_stays(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in failure().message
    assert names() == [part().name]


def test_a_place_that_cannot_be_written_is_one_line(hub: Hub, data: Path) -> None:
    data.write_text("a file where the folder should be")
    assert str(data) in failure().message
