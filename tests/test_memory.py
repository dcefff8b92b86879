from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specdec_cli import memory
from specdec_cli.errors import UsageError
from specdec_cli.memory import LIMIT, load, remember

OURS, THEIRS = b"ours".ljust(16), b"theirs".ljust(16)


def remembered(path: Path, whose: bytes = OURS) -> list[list[int]]:
    return [list(tokens) for tokens in load(path, whose)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outputs.memory"


def test_outputs_come_back_in_order_the_latest_last(path: Path) -> None:
    outputs = [[1, 2, 3], [0], [151935, 7]]
    for tokens in outputs:
        remember(path, OURS, tokens)
    assert remembered(path) == outputs


def test_a_file_that_is_not_there_yet_or_empty_holds_nothing(path: Path) -> None:
    assert remembered(path) == []
    path.touch()
    assert remembered(path) == []
    remember(path, OURS, [5])
    assert remembered(path) == [[5]]


def test_an_empty_output_is_not_worth_a_file(path: Path) -> None:
    remember(path, OURS, [])
    assert not path.exists()


def test_vocabularies_are_kept_apart(path: Path) -> None:
    remember(path, OURS, [1])
    remember(path, THEIRS, [2])
    remember(path, OURS, [3])
    assert (remembered(path), remembered(path, THEIRS)) == ([[1], [3]], [[2]])


def test_the_oldest_are_dropped_above_the_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LIMIT", 10)
    for tokens in ([1] * 4, [2] * 4, [3] * 2):
        remember(path, OURS, tokens)
    assert remembered(path) == [[1] * 4, [2] * 4, [3] * 2]
    remember(path, THEIRS, [4])
    assert (remembered(path), remembered(path, THEIRS)) == ([[2] * 4, [3] * 2], [[4]])


def test_of_an_output_above_the_limit_the_end_is_kept(path: Path) -> None:
    remember(path, OURS, [9])
    remember(path, OURS, range(LIMIT + 5))
    assert remembered(path) == [list(range(5, LIMIT + 5))]


def test_the_same_output_again_takes_no_more_room_and_becomes_the_latest(path: Path) -> None:
    for tokens in ([1, 2], [3], [1, 2]):
        remember(path, OURS, tokens)
    assert remembered(path) == [[3], [1, 2]]


@pytest.mark.parametrize("content", [b"GGUF", b"specdec memory 2\n1234", b"x" * 10_000, b"{}\n"])
def test_another_kind_of_file_is_refused_and_left_as_it_was(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for use in (lambda: load(path, OURS), lambda: remember(path, OURS, [1])):
        with pytest.raises(UsageError, match="is not a memory of specdec"):
            use()
    assert path.read_bytes() == content


def test_damage_anywhere_is_refused_and_left_as_it_was(path: Path) -> None:
    remember(path, OURS, [1, 2, 3])
    whole = path.read_bytes()
    broken = [whole[:end] for end in range(1, len(whole))]
    broken += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for content in [*broken, whole + b"\0"]:
        path.write_bytes(content)
        for use in (lambda: load(path, OURS), lambda: remember(path, OURS, [1])):
            with pytest.raises(UsageError, match=r"is damaged|is not a memory"):
                use()
        assert path.read_bytes() == content


def test_what_is_no_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a file"):
        load(tmp_path, OURS)
    with pytest.raises(UsageError, match="No such file"):
        remember(tmp_path / "nowhere" / "outputs", OURS, [1])
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="Not a directory"):
        load(tmp_path / "file" / "outputs", OURS)


def test_a_failed_write_leaves_what_was_there_and_no_litter(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(path, OURS, [1])
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UsageError, match=r"cannot write memory .*: No space left"):
        remember(path, OURS, [2])
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_others_cannot_read_what_was_said(path: Path) -> None:
    remember(path, OURS, [1])
    assert path.stat().st_mode & 0o077 == 0 or sys.platform == "win32"


def test_a_link_stays_a_link(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    remember(link, OURS, [1])
    assert link.is_symlink()
    assert remembered(path) == [[1]]


def test_processes_at_once_lose_nothing_of_each_other(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from specdec_cli.memory import remember\n"
        "for turn in range(25): remember(Path(sys.argv[1]), bytes(16), [int(sys.argv[2]), turn])"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), str(number)]) for number in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    found = remembered(path, bytes(16))
    assert sorted(found) == [[number, turn] for number in range(4) for turn in range(25)]
    assert {number: [turn for who, turn in found if who == number] for number in range(4)} == {
        number: list(range(25)) for number in range(4)
    }
