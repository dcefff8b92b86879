"""A trace takes the place of a trace and of nothing else, whole lines at a time, and never costs the answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.step import Step
from specdec_cli.errors import UsageError
from specdec_cli.traces import writing
from specdec_cli.traces.trace import Header
from specdec_cli.traces.writing import TraceWriter, to_line
from tests.traces.traced import read, traced

HEADER = Header("0", "t.gguf", None, "block", 1, 0, 0, 1, 10, {}, "auto", None, {"prompt": "code"})


class Spelling:
    """Of tokens that are letters; none of them is a control token."""

    def piece(self, token: int) -> bytes:
        return bytes([97 + token % 26])

    def special_text(self, token: int | None) -> str:
        raise AssertionError(token)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answer.trace"


@pytest.fixture(scope="module")
def steps(attention_pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    """Rounds of a real answer."""
    return traced(attention_pair, tmp_path_factory.mktemp("steps") / "trace", max_tokens=40).steps


def written(path: Path, steps: list[Step], notices: list[str] | None = None) -> None:
    told: list[str] = [] if notices is None else notices
    with TraceWriter(path, told.append) as writer:
        writer.begin(HEADER, Spelling())
        for step in steps:
            writer.write(step)
        writer.end("length", {"rounds": len(steps)})


def test_a_trace_is_made_where_there_is_none(path: Path, steps: list[Step]) -> None:
    written(path, steps)
    (answer,) = read(path).answers
    assert answer.header == HEADER
    assert len(answer.rounds) == len(steps)
    assert answer.end is not None
    assert answer.end.stats == {"rounds": len(steps)}


def test_a_trace_takes_the_place_of_a_longer_one(path: Path, steps: list[Step]) -> None:
    written(path, steps)
    written(path, steps[:1])
    assert len(read(path).answers[0].rounds) == 1


def test_an_old_trace_stays_until_an_answer_begins(path: Path, steps: list[Step]) -> None:
    written(path, steps)
    before = path.read_bytes()
    with TraceWriter(path, print):
        assert path.read_bytes() == before
    assert path.read_bytes() == before


def test_a_file_that_got_no_answer_is_not_left_behind(path: Path) -> None:
    with TraceWriter(path, print):
        assert path.exists()
    assert not path.exists()


def test_an_empty_file_can_become_a_trace_and_stays_if_it_does_not(path: Path, steps: list[Step]) -> None:
    path.touch()
    with TraceWriter(path, print):
        pass
    assert path.exists()
    written(path, steps)
    assert read(path)


@pytest.mark.parametrize("content", [b"my notes", b"{}\n", b'{"type":"answer"}', b"\0" * 100, b"{"])
def test_a_file_that_is_no_trace_is_refused_and_left_untouched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is there and is no trace"):
        TraceWriter(path, print)
    assert path.read_bytes() == content


def test_a_place_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path) -> None:
    for place, reason in {
        tmp_path: "Is a directory",
        tmp_path / "none" / "trace": "No such file",
        Path("/dev/null"): "a pipe or a device",
        tmp_path / "zero\0byte": "no file can have that name",
        tmp_path / ("long" * 100): "File name too long",
    }.items():
        with pytest.raises(UsageError, match=reason) as refusal:
            TraceWriter(place, print)
        assert "\n" not in refusal.value.message
        assert refusal.value.exit_code == 2


def test_each_round_is_on_the_disk_when_it_has_been_held_long_enough(
    path: Path, steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "SECONDS_HELD", 0.0)
    writer = TraceWriter(path, print)
    writer.begin(HEADER, Spelling())
    for count, step in enumerate(steps, 1):
        writer.write(step)
        lines = path.read_bytes().split(b"\n")
        assert [json.loads(line)["type"] for line in lines[:-1]] == ["answer"] + ["round"] * count
        assert lines[-1] == b""
    writer.close()


def test_rounds_are_held_for_a_moment_and_none_is_lost_at_the_end(
    path: Path, steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "SECONDS_HELD", 1e9)
    with TraceWriter(path, print) as writer:
        writer.begin(HEADER, Spelling())
        header = path.stat().st_size
        for step in steps:
            writer.write(step)
        assert path.stat().st_size == header
    assert len(read(path).answers[0].rounds) == len(steps)


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """No file of this process can grow beyond `size` bytes."""
    if sys.platform == "win32":
        pytest.skip("no limit on files here")
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_ends_the_trace_after_a_whole_line_with_one_notice(
    path: Path, steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "SECONDS_HELD", 0.0)
    notices: list[str] = []
    with small_disk(4000):
        written(path, steps, notices)
    assert len(notices) == 1
    assert str(path) in notices[0]
    assert "the answer goes on" in notices[0]
    (answer,) = read(path).answers
    assert 0 < len(answer.rounds) < len(steps)
    assert answer.end is None


def test_several_answers_follow_each_other(path: Path, steps: list[Step]) -> None:
    with TraceWriter(path, print) as writer:
        for count in (1, 2):
            writer.begin(HEADER, Spelling())
            for step in steps[:count]:
                writer.write(step)
            writer.end("stop", {})
    assert [len(answer.rounds) for answer in read(path).answers] == [1, 2]


def test_a_line_has_nothing_that_a_terminal_or_a_reader_of_lines_obeys() -> None:
    text = "\x1b[31m\x7f\x9b2J\u2028\u2029\r\n\0é"
    line = to_line({"text": text})
    assert json.loads(line) == {"text": text}
    assert line == b'{"text":"\\u001b[31m\\u007f\\u009b2J\\u2028\\u2029\\r\\n\\u0000\xc3\xa9"}\n'
