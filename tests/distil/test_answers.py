"""The file of answers: it grows by whole lines, and is gone on from whatever ended a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from specdec_cli.distil.answers import Answer, AnswerFile
from specdec_cli.errors import UsageError

WHOSE = bytes(range(16))
ASKED = "some prompts"


def answer(number: int, tokens: int = 5) -> Answer:
    likely = np.arange(3 * (tokens - 2), dtype=np.int32).reshape(-1, 3) + number
    return Answer(number, 2, np.arange(tokens, dtype=np.int32), likely, (-likely / 7).astype(np.float16))


def same(one: Answer, other: Answer) -> bool:
    arrays = ("tokens", "likely", "logprobs")
    return (one.number, one.start) == (other.number, other.start) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    )


@pytest.fixture
def file(tmp_path: Path) -> AnswerFile:
    made = AnswerFile(tmp_path / "some.answers", WHOSE)
    made.resume(ASKED)
    return made


def test_what_was_added_is_read_again_in_its_order(file: AnswerFile) -> None:
    added = [answer(7), answer(3, tokens=9)]
    for each in added:
        file.add(each)
    assert all(map(same, file, added))
    assert len([*file]) == len(added)


def test_a_run_learns_which_answers_are_there(file: AnswerFile) -> None:
    file.add(answer(7))
    file.add(answer(3, tokens=9))
    assert AnswerFile(file.path, WHOSE).resume(ASKED) == {7: 3, 3: 7}


@pytest.mark.parametrize("lost", [1, 20])
def test_half_a_line_of_a_killed_run_is_cut_off(file: AnswerFile, lost: int) -> None:
    file.add(answer(1))
    file.add(answer(2))
    file.path.write_bytes(file.path.read_bytes()[:-lost])
    assert [each.number for each in file] == [1], "a reader passes it over"
    assert file.resume(ASKED) == {1: 3}
    file.add(answer(5))
    assert [each.number for each in file] == [1, 5]


def test_a_first_line_cut_short_is_begun_anew(file: AnswerFile) -> None:
    file.path.write_bytes(file.path.read_bytes()[:-4])
    assert file.resume(ASKED) == {}
    assert [*file] == []


@pytest.mark.parametrize("content", [b"some text\nand more\n", b"a line", b"{", b"{}\n", b"[1]\n", b"\xff\xfe\n"])
def test_another_file_is_refused_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"notes\.txt holds no answers of specdec distil"):
        AnswerFile(path, WHOSE).resume(ASKED)
    with pytest.raises(UsageError, match=r"notes\.txt holds no answers of specdec distil"):
        list(AnswerFile(path, WHOSE))
    assert path.read_bytes() == content


def test_answers_of_another_vocabulary_are_refused(file: AnswerFile) -> None:
    with pytest.raises(UsageError, match=r"some\.answers are of a target with another vocabulary"):
        AnswerFile(file.path, bytes(16)).resume(ASKED)


@pytest.mark.parametrize("line", [b"{}\n", b"what\n", b'{"number":1,"kind":"x","start":0,"tokens":"!"}\n', b"3\n"])
def test_a_line_that_is_no_answer_is_damage(file: AnswerFile, line: bytes) -> None:
    with file.path.open("ab") as raw:
        raw.write(line)
    for read in (lambda: file.resume(ASKED), lambda: [*file]):
        with pytest.raises(UsageError, match=r"some\.answers are damaged"):
            read()


def test_a_place_where_nothing_can_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        AnswerFile(tmp_path / "missing" / "some.answers", WHOSE).resume(ASKED)
    with pytest.raises(UsageError, match=r"cannot read answers .*: No such file or directory"):
        list(AnswerFile(tmp_path / "some.answers", WHOSE))


def test_answers_to_something_else_are_not_mixed_in(file: AnswerFile) -> None:
    file.add(answer(1))
    before = file.path.read_bytes()
    with pytest.raises(UsageError, match=r"some\.answers are to other prompts, or by other settings"):
        file.resume("other prompts")
    assert file.path.read_bytes() == before


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: Is a directory"):
        AnswerFile(tmp_path, WHOSE).resume(ASKED)
