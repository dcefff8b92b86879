"""Session files: what is kept comes back, and what is not ours or damaged is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.chat.saved import Saved, load, save, to_bytes
from specdec_cli.errors import UsageError

SAVED = Saved(
    [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "list[int] \u2028 ünï [/INST]\n<|im_end|>"},
        {"role": "assistant", "content": ""},
    ],
    {"seed": 5, "temperature": 0.1, "stop": ["a", "b"]},
    3,
    "target.gguf",
)


def changed(**changes: Any) -> bytes:
    """The file of SAVED with other values; None leaves a key out."""
    content = {**json.loads(to_bytes(SAVED)), **changes}
    return json.dumps({key: value for key, value in content.items() if value is not None}).encode()


BAD = [
    (b"\n", "is not a specdec session"),
    (b"\x00\xff", "is not a specdec session"),
    (b"[1]", "is not a specdec session"),
    (b'{"a": 1}', "is not a specdec session"),
    (to_bytes(SAVED)[:-20], "is damaged"),
    (changed(version=2), "was written by a newer specdec"),
    (changed(version=None), "is damaged"),
    (changed(version="1"), "is damaged"),
    (changed(turn=-1), "is damaged"),
    (changed(turn=True), "is damaged"),
    (changed(turn="3"), "is damaged"),
    (changed(settings=[]), "is damaged"),
    (changed(target=None), "is damaged"),
    (changed(messages={}), "is damaged"),
    (changed(messages=[{"role": "user"}]), "is damaged"),
    (changed(messages=[{"role": "tool", "content": "x"}]), "is damaged"),
    (changed(messages=[{"role": "user", "content": "x"}]), "is damaged"),
    (changed(messages=[{"role": "assistant", "content": "x"}, {"role": "user", "content": "x"}]), "is damaged"),
]


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    save(path, SAVED)
    assert load(path) == SAVED
    save(path, SAVED)
    assert [each.name for each in tmp_path.iterdir()] == ["s.json"], "no temporary file stays"


@pytest.mark.parametrize(("content", "reason"), BAD)
def test_a_file_that_is_no_session_is_refused_and_left_untouched(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    for use in (lambda: load(path), lambda: save(path, SAVED)):
        with pytest.raises(UsageError) as refusal:
            use()
        assert str(path) in refusal.value.message
        assert reason in refusal.value.message
        assert refusal.value.hint
    assert path.read_bytes() == content


def test_an_empty_file_can_become_a_session_and_is_none_yet(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.touch()
    with pytest.raises(UsageError, match="is not a specdec session"):
        load(path)
    save(path, SAVED)
    assert load(path) == SAVED


def test_deep_nesting_is_damage_and_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(b"[" * 100_000)
    with pytest.raises(UsageError, match="is not a specdec session"):
        load(path)


def test_what_cannot_be_read_or_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read session .*No such file"):
        load(tmp_path / "missing")
    with pytest.raises(UsageError, match="is not a file"):
        load(tmp_path)
    with pytest.raises(UsageError, match="is not a file"):
        save(tmp_path, SAVED)
    with pytest.raises(UsageError, match=r"cannot write session .*No such file"):
        save(tmp_path / "no" / "folder", SAVED)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.json"
    save(path, SAVED)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        save(path, Saved([], {}, 0, "t"))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["s.json"]
