"""Files of tables: what is written comes back, and what is no table is refused in one line."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from specdec_cli.core.ngram_counts import count, observe
from specdec_cli.core.ngrams import NgramTable
from specdec_cli.errors import UsageError
from specdec_cli.ngram_file import read_ngrams, to_bytes, within, write_ngrams

WHOSE = b"0123456789abcdef"


def table(seed: int = 1, vocabulary: int = 300_000) -> NgramTable:
    text = np.random.default_rng(seed).integers(0, vocabulary, 50).tolist() * 2
    return count(observe(text, 4), vocabulary)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "some.ngrams"


@pytest.mark.parametrize("vocabulary", [2, 50, 300_000])
def test_a_table_comes_back_as_it_was(path: Path, vocabulary: int) -> None:
    written = table(vocabulary=vocabulary)
    write_ngrams(path, written, WHOSE)
    back, whose = read_ngrams(path)
    assert (back.vocabulary, whose) == (vocabulary, WHOSE)
    for ours, theirs in zip(written.levels, back.levels, strict=True):
        assert (ours.keys.tolist(), ours.counts.tolist()) == (theirs.keys.tolist(), theirs.counts.tolist())


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_ngrams(path)
    return str(caught.value)


@pytest.mark.parametrize("length", [0, 1, 30, 500, -30, -1])
def test_a_part_of_a_table_is_refused(path: Path, length: int) -> None:
    path.write_bytes(to_bytes(table(), WHOSE)[:length])
    assert "is not a table of specdec, or is damaged" in refusal(path)


def test_any_changed_byte_is_refused_or_does_no_harm(path: Path) -> None:
    content = to_bytes(table(vocabulary=40), WHOSE)
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            back, _ = read_ngrams(path)
        except UsageError:
            continue
        assert np.isfinite(back.logits((1, 2, 3))).all()


@pytest.mark.parametrize("content", [b"hello", b"PK\x03\x04" + bytes(50), np.arange(9).tobytes()])
def test_another_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "is not a table of specdec" in refusal(path)


def test_an_array_in_place_of_a_table_is_refused(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    assert "is not a table of specdec" in refusal(path)


def test_a_missing_file_and_a_folder_are_named(path: Path) -> None:
    assert refusal(path) == f"table {path} cannot be read: No such file or directory"
    assert refusal(path.parent) == f"table {path.parent} cannot be read: Is a directory"


def with_array(content: bytes, name: str, value: object) -> bytes:
    """The file with another array in place of `name`."""
    with np.load(io.BytesIO(content)) as arrays:
        changed = {each: arrays[each] for each in arrays.files} | {name: np.asarray(value)}
    file = io.BytesIO()
    np.savez_compressed(file, **changed)
    return file.getvalue()


def test_a_later_version_says_so(path: Path) -> None:
    path.write_bytes(with_array(to_bytes(table(), WHOSE), "version", 99))
    assert "was written by a later specdec" in refusal(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocabulary", 0),
        ("vocabulary", 3),
        ("vocabulary", 2**40),
        ("order", 0),
        ("order", 5),
        ("followers2", np.zeros((4, 2), np.uint8)),
        ("followers1", np.full((4, 1), 255, np.uint8)),
        ("tokens1", np.zeros((4, 50), np.uint8)),
        ("counts3", np.zeros((4, 1), np.uint8)),
        ("counts3", np.zeros(3, np.uint16)),
        ("fingerprint", np.array(["x"])),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(path: Path, name: str, value: object) -> None:
    path.write_bytes(with_array(to_bytes(table(), WHOSE), name, value))
    if name == "fingerprint":
        assert read_ngrams(path)[1] != WHOSE
    else:
        assert "is not a table of specdec, or is damaged" in refusal(path)


def test_a_file_that_cannot_be_written_leaves_the_old_one(path: Path) -> None:
    write_ngrams(path, table(), WHOSE)
    with pytest.raises(UsageError, match="cannot be written"):
        write_ngrams(path.parent / "missing" / "x.ngrams", table(), WHOSE)
    assert zipfile.is_zipfile(path)


def test_a_file_takes_three_bytes_for_an_ngram_or_less(path: Path) -> None:
    text = np.random.default_rng(3).zipf(1.3, 20_000).clip(1, 40_000).tolist()
    counted = count(observe(text, 4), 49_152)
    assert len(to_bytes(counted, WHOSE)) <= 3 * counted.size


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_what_is_rare_is_left_out_of_a_file_that_must_be_smaller(share: float) -> None:
    text = [991, 992, 993] * 40 + np.random.default_rng(3).zipf(1.4, 5000).clip(1, 990).tolist()
    counted = count(observe(text, 4), 1000)
    most = int(len(to_bytes(counted, WHOSE)) * share)
    smaller = within(counted, most, WHOSE)
    assert len(to_bytes(smaller, WHOSE)) <= most or smaller.size == len(counted.levels[0].keys)
    assert smaller.size < counted.size
    assert (smaller.logits([991, 992]).argmax() == 993) == (smaller.size > len(counted.levels[0].keys))


def test_a_file_that_is_small_enough_loses_nothing() -> None:
    counted = table()
    assert within(counted, len(to_bytes(counted, WHOSE)), WHOSE) is counted
