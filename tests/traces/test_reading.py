"""What is read is what was written; damage is one line with its number, and nothing hostile does any harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.errors import UsageError
from specdec_cli.traces import reading
from specdec_cli.traces.reading import read_records, read_trace
from tests.traces.traced import read, traced

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def whole(attention_pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A trace of one answer, with expectations in it."""
    path = tmp_path_factory.mktemp("whole") / "trace"
    traced(attention_pair, path, max_tokens=20, draft_tokens=3)
    expected = b'"controller":{"kept":[0.5],"tokens":1.5,"cost":1.2,"rate":1.1,"gain":0.18}'
    return path.read_bytes().replace(b'"controller":null', expected)


@pytest.fixture
def lines(whole: bytes) -> Lines:
    """The records of that trace."""
    return [json.loads(line) for line in whole.splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answer.trace"


def save(path: Path, lines: Lines) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as refused:
        read(path)
    assert "\n" not in refused.value.message
    assert refused.value.hint
    return refused.value.message


def test_fields_that_are_not_known_mean_nothing(path: Path, lines: Lines, whole: bytes) -> None:
    before = path.with_name("before")
    before.write_bytes(whole)
    for line in lines:
        line["more"] = {"of": [1]}
    assert read(save(path, lines)) == read(before)


def test_a_last_line_that_is_cut_is_left_out_with_a_notice(path: Path, whole: bytes) -> None:
    lines = whole.splitlines(keepends=True)
    for at in (1, 10, len(lines[-2]) - 1):
        path.write_bytes(b"".join(lines[:-2]) + lines[-2][: at - len(lines[-2])])
        notices: list[str] = []
        (answer,) = read_trace(path, notices.append).answers
        assert len(answer.rounds) in (len(lines) - 3, len(lines) - 2)
        assert len(notices) == len(lines) - 2 - len(answer.rounds)
        assert answer.end is None


def test_a_last_line_needs_no_end_of_line(path: Path, whole: bytes) -> None:
    path.write_bytes(whole[:-1])
    assert read(path).answers[0].end is not None


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    'it has no "place"': lambda line: line.pop("place"),
    '"place" is no whole number': lambda line: line.update(place=-1),
    '"round" is no whole number': lambda line: line.update(round=True),
    '"type" is none of answer, round, end': lambda line: line.update(type=["round"]),
    '"ended" is neither true nor false': lambda line: line.update(ended=1),
    '"drafted" is no list': lambda line: line.update(drafted={}),
    "a drafted token is no object": lambda line: line.update(drafted=[1]),
    '"q" is no number in 0..1': lambda line: line["drafted"][0].update(q=1.5),
    '"q_entropy" is no number': lambda line: line["drafted"][0].update(q_entropy="much"),
    '"decision" is none of': lambda line: line["drafted"][0].update(decision="perhaps"),
    'has no "p"': lambda line: line["drafted"][0].update(decision="accepted", p=None),
    '"top" is no list of 4': lambda line: line["drafted"][0].update(decision="accepted", p=1, top=[[1, "a", 1]]),
    '"token" is no whole number': lambda line: line["drafted"][0].update(token=2**40),
    '"bytes" is no whole number in 0..255': lambda line: line["drafted"][0].update(bytes=[256]),
    '"kind" is none of': lambda line: line["emitted"][0].update(kind="gift"),
    '"text" is no text': lambda line: line["emitted"][0].update(text=7),
    '"from" is no list of 3': lambda line: line["last"].update({"from": [[1, "a", 0.5, 0]]}),
    '"seconds" is no object': lambda line: line.update(seconds=0.1),
    '"draft" is no number': lambda line: line["seconds"].update(draft=-0.5),
    '"kept" is no number': lambda line: line["controller"].update(kept=[10**400]),
    '"rate" is no number': lambda line: line["controller"].update(rate=10**30),
    "it is round 7, where": lambda line: line.update(round=7),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_with_its_line(path: Path, lines: Lines, damage: str) -> None:
    at = next(number for number, line in enumerate(lines) if number > 1 and line.get("drafted"))
    DAMAGES[damage](lines[at])
    message = refusal(save(path, lines))
    assert f"is damaged in line {at + 1}: " in message
    assert damage in message


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b'{"q": NaN}', b"[" * 100_000, b"9" * 5000, b"1e999"]
)
def test_a_line_that_is_no_record_is_damage(path: Path, whole: bytes, line: bytes) -> None:
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], line, b"\n", *lines[2:]]))
    assert "is damaged in line 3: " in refusal(path)


@pytest.mark.parametrize("content", [b"my notes\n", b"<html>", b"GGUF\0\0", b"{}\n", b"[" * 100_000])
def test_a_file_that_is_no_trace_is_said_to_be_none(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "is no trace" in refusal(path)


def test_an_empty_file_is_said_to_be_empty(path: Path) -> None:
    path.touch()
    assert "is empty" in refusal(path)


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    for place, reason in {
        tmp_path: "Is a directory",
        tmp_path / "none": "No such file",
        tmp_path / "zero\0byte": "zero byte",
    }.items():
        with pytest.raises(UsageError, match=reason):
            read(place)


@pytest.mark.parametrize("schema", [0, 2, 10**9])
def test_another_schema_is_refused_by_its_number(path: Path, lines: Lines, schema: int) -> None:
    lines[0] = {"type": "answer", "schema": schema, "new": "shape"}
    message = refusal(save(path, lines))
    assert f"has schema {schema}, and this specdec reads 1" in message


def test_a_round_or_an_end_without_an_answer_is_damage(path: Path, lines: Lines) -> None:
    for first in (lines[1:], [lines[0], lines[-1], lines[1]], [lines[0], lines[-1], lines[-1]]):
        assert "it belongs to no answer" in refusal(save(path, first))


def test_an_answer_that_never_ended_is_followed_by_the_next(path: Path, lines: Lines) -> None:
    one, other = read(save(path, [*lines[:3], *lines])).answers
    assert (len(one.rounds), one.end) == (2, None)
    assert other.end is not None


def test_records_before_the_damage_are_there(path: Path, whole: bytes) -> None:
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]) + b"damage\n")
    records = read_records(path, print)
    assert len(list(islice(records, 3))) == 3
    with pytest.raises(UsageError, match="line 4"):
        next(records)


def test_a_token_of_ten_million_characters_is_a_token(path: Path, lines: Lines) -> None:
    lines[1]["emitted"][0]["text"] = "x" * 10_000_000
    lines[1]["emitted"][0].pop("bytes", None)
    assert len(read(save(path, lines[:2])).answers[0].rounds[0].emitted[0].token.data) == 10_000_000


def test_a_line_without_an_end_is_not_read_for_ever(path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE", 100_000)
    path.write_bytes(whole + b'{"type":"' + b"x" * 300_000)
    assert "it is longer than 100,000 bytes" in refusal(path)


def test_half_of_a_surrogate_is_text_too(path: Path, lines: Lines) -> None:
    lines[1]["emitted"][0]["text"] = "\ud800"
    lines[1]["emitted"][0].pop("bytes", None)
    assert read(save(path, lines[:2])).answers[0].rounds[0].emitted[0].token.data == b"?"
