"""Whatever is wrong with a file ends in one line that names it, its role and the reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specdec_cli.catalog import Pair
from specdec_cli.errors import EXIT_MODEL, ModelError
from specdec_cli.llama.gguf import read_vocabulary
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from tests.engine import Notices
from tests.toy_gguf import Toy, attention_toy

TOY = attention_toy()


def _without(name: str) -> Toy:
    return replace(TOY, tensors={key: tensor for key, tensor in TOY.tensors.items() if key != name})


def _as_type(name: str, kind: type[np.generic]) -> Toy:
    return replace(TOY, tensors={**TOY.tensors, name: TOY.tensors[name].astype(kind)})


def _shard(number: int) -> Toy:
    return TOY.having({"split.no": np.uint16(number), "split.count": np.uint16(3), "split.tensors.count": 20})


BYTES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "is empty"),
    "the magic alone": (lambda _: b"GGUF", "is damaged or cut short"),
    "first quarter of the header": (lambda whole: whole[:2500], "is damaged or cut short"),
    "first half": (lambda whole: whole[: len(whole) // 2], "is cut short: 233,632 of 467,264 bytes"),
    "all but the last kB": (lambda whole: whole[:-1000], "is cut short: 466,264 of 467,264 bytes"),
    "all but the last byte": (lambda whole: whole[:-1], "is cut short: 467,263 of 467,264 bytes"),
    "a Git LFS pointer": (
        lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:1",
        "is a Git LFS pointer",
    ),
    "a web page": (lambda _: b"\n<!DOCTYPE html><html><body>Sign in</body></html>", "is a web page"),
    "a PyTorch file": (lambda _: b"PK\x03\x04" + bytes(100), "is a zip archive or a PyTorch file"),
    "old GGML": (lambda _: b"lmgg" + bytes(100), "is in the old GGML format"),
    "some other text": (lambda _: b'{"error": "Invalid username or password."}', "is not a GGUF file"),
    "zeros": (lambda _: bytes(5000), "is not a GGUF file"),
    "of a later version": (lambda whole: b"GGUF\x63\0\0\0" + whole[8:], "is damaged or cut short"),
    "2^60 keys": (lambda whole: whole[:16] + (2**60).to_bytes(8, "little") + whole[24:], "is damaged or cut short"),
    "no tensors": (lambda whole: whole[:8] + bytes(16), "holds a vocabulary and no weights"),
}

HEADERS: dict[str, tuple[Toy, str]] = {
    "projector": (TOY.having({"general.type": "mmproj"}), 'is of type "mmproj", not a language model'),
    "later shard": (_shard(1), "is part 2 of 3"),
    "vocabulary only": (replace(TOY, tensors={}), "holds a vocabulary and no weights"),
    "no vocabulary": (TOY.having({"tokenizer.ggml.tokens": None}), "has no vocabulary"),
    "tokens that are numbers": (TOY.having({"tokenizer.ggml.tokens": [1, 2, 3]}), "has no vocabulary"),
    "an encoder": (TOY.having({"llama.attention.causal": False}), "cannot continue a text"),
    "no context": (TOY.having({"llama.context_length": 0}), "a context length of 0"),
    "2^31 of context": (TOY.having({"llama.context_length": 2**31}), "a context length of 2147483648"),
    "F64 weights": (_as_type("blk.0.attn_q.weight", np.float64), "holds blk.0.attn_q.weight as F64"),
    "I8 weights": (_as_type("output.weight", np.int8), "holds output.weight as I8"),
    "I32 weights": (_as_type("blk.1.ffn_up.weight", np.int32), "holds blk.1.ffn_up.weight as I32"),
}

LOADS: dict[str, tuple[Toy, str]] = {
    "first shard alone": (_shard(0), "invalid split file name"),
    "unknown architecture": (TOY.having({"general.architecture": "nosuch"}), "unknown model architecture: 'nosuch'"),
    "no head count": (TOY.having({"llama.attention.head_count": None}), "tensor 'blk.0.attn_q.weight' has wrong shape"),
    "no heads": (TOY.having({"llama.attention.head_count": 0}), ""),
    "a head count that is text": (TOY.having({"llama.attention.head_count": "four"}), "llama.attention.head_count"),
    "absurd width": (TOY.having({"llama.embedding_length": 2**31}), ""),
    "a missing tensor": (_without("blk.1.ffn_up.weight"), "tensor 'blk.1.ffn_up.weight' not found"),
    "a tensor of another shape": (
        replace(TOY, tensors={**TOY.tensors, "output_norm.weight": np.ones(32, np.float32)}),
        "tensor 'output_norm.weight' has wrong shape",
    ),
    "a tokenizer that nobody knows": (TOY.having({"tokenizer.ggml.model": "nosuch"}), "unknown tokenizer: 'nosuch'"),
}


def _assert_one_line(error: ModelError, path: Path, role: str, reason: str) -> None:
    assert error.message.startswith(f"{role} {path} ")
    assert reason in error.message
    assert "does not say why" not in error.message
    assert error.exit_code == EXIT_MODEL
    assert error.hint
    assert len(error.message.splitlines()) == 1
    assert len(error.message) < 400 + len(str(path))


@pytest.mark.parametrize("role", ["target", "draft"])
@pytest.mark.parametrize(("change", "reason"), BYTES.values(), ids=BYTES)
def test_what_is_not_a_whole_model_is_told_apart(
    tmp_path: Path, change: Callable[[bytes], bytes], reason: str, role: str
) -> None:
    path = TOY.write(tmp_path / "model.gguf")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ModelError) as caught:
        read_vocabulary(path, role)
    _assert_one_line(caught.value, path, role, reason)


@pytest.mark.parametrize("share", range(0, 50, 7))
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, share: int) -> None:
    path = TOY.write(tmp_path / "model.gguf")
    path.write_bytes(path.read_bytes()[: path.stat().st_size * share // 50])
    with pytest.raises(ModelError) as caught:
        read_vocabulary(path, "draft")
    _assert_one_line(caught.value, path, "draft", "")


@pytest.mark.parametrize(("toy", "reason"), HEADERS.values(), ids=HEADERS)
def test_what_llama_cpp_would_die_of_is_found_in_the_header(tmp_path: Path, toy: Toy, reason: str) -> None:
    path = toy.write(tmp_path / "model.gguf")
    with pytest.raises(ModelError) as caught:
        read_vocabulary(path, "target")
    _assert_one_line(caught.value, path, "target", reason)


@pytest.mark.parametrize("role", ["target", "draft"])
@pytest.mark.parametrize(("toy", "reason"), LOADS.values(), ids=LOADS)
def test_a_refusal_of_llama_cpp_is_passed_on_with_its_reason(
    tmp_path: Path, attention_pair: Pair, toy: Toy, reason: str, role: str
) -> None:
    path = toy.write(tmp_path / "model.gguf")
    with pytest.raises(ModelError) as caught:
        Session(
            Pair(path, "none") if role == "target" else Pair(attention_pair.target, path),
            ModelSettings(threads=1),
            Notices().listener,
        )
    _assert_one_line(caught.value, path, role, reason)


def test_a_bad_draft_is_noticed_before_any_of_the_target_is_loaded(tmp_path: Path, attention_pair: Pair) -> None:
    path = _without("output_norm.weight").write(tmp_path / "draft.gguf")
    memory = Notices()
    with pytest.raises(ModelError, match=r"^draft "):
        Session(Pair(attention_pair.target, path), ModelSettings(threads=1), memory.listener)
    assert "loading the target" not in memory.loading


def test_a_folder_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        read_vocabulary(tmp_path, "target")
    _assert_one_line(caught.value, tmp_path, "target", "is a folder")


def test_a_missing_file_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        read_vocabulary(tmp_path / "nope.gguf", "draft")
    _assert_one_line(caught.value, tmp_path / "nope.gguf", "draft", "does not exist")


def test_a_pipe_that_never_speaks_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError) as caught:
        read_vocabulary(tmp_path / "pipe", "target")
    _assert_one_line(caught.value, tmp_path / "pipe", "target", "is a pipe")


def test_the_parts_of_a_split_model_must_all_be_there(tmp_path: Path) -> None:
    first = _shard(0).write(tmp_path / "model-00001-of-00003.gguf")
    with pytest.raises(ModelError, match="00002-of-00003") as caught:
        Session(Pair(first, "none"), ModelSettings(threads=1), Notices().listener)
    _assert_one_line(caught.value, first, "target", "")


def test_an_unreadable_file_is_not_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = TOY.write(tmp_path / "model.gguf")
    monkeypatch.setattr(Path, "open", refuse)  # a mode would not stop the superuser
    with pytest.raises(ModelError) as caught:
        read_vocabulary(path, "target")
    _assert_one_line(caught.value, path, "target", "cannot be read: Permission denied")


def test_a_path_that_cannot_exist_is_not_a_model() -> None:
    with pytest.raises(ModelError, match=r"^target x+ cannot be read: File name too long"):
        read_vocabulary(Path("x" * 5000), "target")


def test_a_good_file_is_read(tmp_path: Path) -> None:
    vocabulary = read_vocabulary(TOY.write(tmp_path / "model.gguf"), "target")
    assert len(vocabulary.tokens) == 259
    assert (vocabulary.bos, vocabulary.add_bos) == (256, False)


def test_the_first_part_of_a_split_model_may_hold_no_weights(tmp_path: Path) -> None:
    first = replace(_shard(0), tensors={}).write(tmp_path / "model-00001-of-00003.gguf")
    assert len(read_vocabulary(first, "target").tokens) == 259


def test_a_name_with_a_zero_byte_and_an_address_are_no_files() -> None:
    with pytest.raises(ModelError, match="its name holds a zero byte"):
        read_vocabulary(Path("a\0b"), "target")
    with pytest.raises(ModelError, match="does not exist") as caught:
        read_vocabulary(Path("https://example.org/model.gguf"), "target")
    assert caught.value.hint == "download the file first"
