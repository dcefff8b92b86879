"""The folder of tensors: nothing in it is served that was not read and found right, and nothing else is touched."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specdec_cli.errors import UsageError
from specdec_cli.worker.fnv import fnv1a
from specdec_cli.worker.tensor_cache import INDEX, Checked, TensorCache, set_aside

CONTENT = bytes(range(256)) * 50
NAME = f"{fnv1a(io.BytesIO(CONTENT)):016x}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "tensors"


@pytest.fixture
def cache(folder: Path) -> TensorCache:
    return TensorCache(folder)


def read_bytes(cache: TensorCache) -> tuple[Checked, int]:
    """What a check finds, and how often it told that it reads something."""
    told: list[float | None] = []
    found = cache.check(lambda _, share: told.append(share))
    return found, len(told)


def hidden(folder: Path) -> list[Path]:
    return list(folder.glob("*.new"))


def test_a_tensor_that_is_right_is_kept_and_not_read_again(cache: TensorCache, folder: Path) -> None:
    (folder / NAME).write_bytes(CONTENT)
    assert read_bytes(cache) == (Checked(1, len(CONTENT), 0), 1)
    assert read_bytes(cache) == (Checked(), 0)
    assert (folder / NAME).read_bytes() == CONTENT


@pytest.mark.parametrize("content", [CONTENT[:-1], b"", CONTENT + b"\0", b"\1" + CONTENT[1:]])
def test_a_tensor_that_is_wrong_is_deleted(cache: TensorCache, folder: Path, content: bytes) -> None:
    (folder / NAME).write_bytes(content)
    assert cache.check() == Checked(deleted=1)
    assert not (folder / NAME).exists()


def test_a_tensor_that_does_not_reach_the_disk_is_deleted(
    cache: TensorCache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (folder / NAME).write_bytes(CONTENT)
    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", fail)
        assert cache.check() == Checked(deleted=1)
    assert not (folder / NAME).exists()


def test_a_tensor_that_changed_since_it_was_right_is_read_again(cache: TensorCache, folder: Path) -> None:
    (folder / NAME).write_bytes(CONTENT)
    os.utime(folder / NAME, ns=(1, 1))
    cache.check()
    (folder / NAME).write_bytes(CONTENT[::-1])
    assert cache.check() == Checked(deleted=1)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": 1}', f'{{"{NAME}": [1]}}', "\0"])
def test_an_index_that_is_damaged_costs_a_second_look_and_no_more(
    cache: TensorCache, folder: Path, content: str
) -> None:
    (folder / NAME).write_bytes(CONTENT)
    cache.check()
    (folder / INDEX).write_text(content)
    assert cache.check() == Checked(1, len(CONTENT), 0)
    assert cache.check() == Checked()


def test_what_is_none_of_ggmls_is_never_touched(cache: TensorCache, folder: Path) -> None:
    names = ["notes.txt", NAME.upper(), f"{NAME}0", NAME[:15], f"{NAME}.new", f".{NAME}", f"{NAME}.gguf"]
    for name in names:
        (folder / name).write_text("mine")
    (folder / ("0" * 16)).mkdir()
    assert cache.check() == Checked()
    assert all((folder / name).read_text() == "mine" for name in names)
    assert (folder / ("0" * 16)).is_dir()


def test_a_tensor_set_aside_while_it_is_open_comes_back_once_it_is_right(
    cache: TensorCache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with (folder / NAME).open("wb") as file:
        file.write(CONTENT)
        set_aside(NAME)
        assert not (folder / NAME).exists()
    assert cache.check(only_new=True) == Checked(1, len(CONTENT), 0)
    assert (folder / NAME).read_bytes() == CONTENT
    assert not hidden(folder)
    assert read_bytes(cache) == (Checked(), 0)


def test_a_tensor_set_aside_that_is_short_never_comes_back(
    cache: TensorCache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for _ in range(2):
        (folder / NAME).write_bytes(CONTENT[:100])
        set_aside(NAME)
    assert len(hidden(folder)) == 2
    assert cache.check(only_new=True) == Checked(deleted=2)
    assert not hidden(folder)
    assert not (folder / NAME).exists()


def test_what_was_set_aside_by_a_worker_that_died_is_looked_into_by_the_next(
    cache: TensorCache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / NAME).write_bytes(CONTENT)
    set_aside(NAME)
    assert cache.check() == Checked(1, len(CONTENT), 0)
    assert (folder / NAME).read_bytes() == CONTENT


def test_a_tensor_that_somebody_else_took_away_is_no_harm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    set_aside(NAME)
    assert not hidden(folder)


def test_new_tensors_are_looked_into_alone_while_others_may_be_written(
    cache: TensorCache, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / NAME).write_bytes(CONTENT[:9])
    assert cache.check(only_new=True) == Checked()
    assert (folder / NAME).read_bytes() == CONTENT[:9]


def test_a_check_that_is_interrupted_keeps_what_it_found(cache: TensorCache, folder: Path) -> None:
    other = bytes(9999)
    for content in (CONTENT, other):
        (folder / f"{fnv1a(io.BytesIO(content)):016x}").write_bytes(content)

    def interrupt(task: str, share: float | None) -> None:
        if share == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.check(interrupt)
    assert cache.check().kept == 1


def test_a_folder_belongs_to_one_worker(cache: TensorCache, folder: Path) -> None:
    with pytest.raises(UsageError, match="belongs to another worker"):
        TensorCache(folder)


def test_a_folder_belongs_to_a_worker_until_its_last_process_has_ended(folder: Path) -> None:
    cache = TensorCache(folder)
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE, pass_fds=[cache.lock]) as child:
        os.close(cache.lock)
        with pytest.raises(UsageError):
            TensorCache(folder)
        child.kill()
    TensorCache(folder)


def test_a_folder_that_can_be_none_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "a\0b"):
        with pytest.raises(UsageError, match=r"--cache .* cannot be used"):
            TensorCache(folder)
    assert (tmp_path / "file").read_text() == "mine"
