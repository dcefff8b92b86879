"""What the metadata of a model say, against what llama.cpp does with that model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.errors import ModelError
from specdec_cli.llama.description import Description, cache_bytes, read_description, state_bytes
from specdec_cli.llama.library import show_log
from tests.engine import loaded, opened
from tests.toy_gguf import BOS, EOS, Toy, attention_toy
from tests.toy_kinds import KINDS, WINDOW, kind_toy

MEBIBYTE = 2**20
ROUNDED = 0.005 * MEBIBYTE
"""llama.cpp logs hundredths of a mebibyte."""
WAYS_BACK = {
    "attention": "attention",
    "mamba": "recurrent",
    "jamba": "hybrid",
    "lfm2": "hybrid",
    "qwen35": "hybrid",
    "gemma3": "sliding window",
}


def toy(kind: str) -> Toy:
    return attention_toy() if kind == "attention" else kind_toy(kind)


def sizes_in_log(path: Path, cache: str, **options: Any) -> float:
    """Bytes that llama.cpp says it reserves for its `cache`, summed over its parts, in a context with `options`."""
    lines: list[str] = []
    show_log(lines.append)
    try:
        with opened(path, **options):
            pass
    finally:
        show_log(None)
    found = re.findall(rf"{cache}: size = +([\d.]+) MiB", "\n".join(lines))
    return sum(map(float, found)) * MEBIBYTE


@pytest.mark.parametrize("kind", ["attention", *KINDS])
def test_the_cache_is_as_big_as_what_llama_cpp_reserves(tmp_path: Path, kind: str) -> None:
    path = toy(kind).write(tmp_path / "x.gguf")
    shape = read_description(path, "target").shape
    for keys, values in (("f16", "f16"), ("f32", "f16"), ("f16", "f32")):
        options = {"size": 4000, "batch": 64, "cache_type_k": keys, "cache_type_v": values, "flash_attention": "on"}
        reserved = sizes_in_log(path, "llama_kv_cache", **options)
        assert cache_bytes(shape, 4000, keys=keys, values=values) == pytest.approx(reserved, abs=2 * ROUNDED)


@pytest.mark.parametrize("kind", ["attention", *KINDS])
def test_kept_states_are_as_big_as_what_llama_cpp_reserves(tmp_path: Path, kind: str) -> None:
    path = toy(kind).write(tmp_path / "x.gguf")
    reserved = sizes_in_log(path, "llama_memory_recurrent", size=512, batch=64, rows=1, snapshots=16)
    assert state_bytes(read_description(path, "draft").shape, 17) == pytest.approx(reserved, abs=ROUNDED)


@pytest.mark.parametrize("kind", ["attention", *KINDS])
def test_the_way_back_is_the_one_that_the_loaded_model_takes(tmp_path: Path, kind: str) -> None:
    path = toy(kind).write(tmp_path / "x.gguf")
    shape = read_description(path, "target").shape
    assert shape.rollback == WAYS_BACK[kind]
    assert shape.window == (WINDOW if kind == "gemma3" else 0)
    with loaded(path) as weights:
        assert weights.can_roll_back == (shape.state == 0)
        assert weights.trained_context == shape.trained_context


def test_types_that_store_blocks_are_reckoned_in_whole_blocks(tmp_path: Path) -> None:
    shape = read_description(attention_toy().write(tmp_path / "x.gguf"), "target").shape
    each = cache_bytes(shape, 256, keys="f16", values="f16") / (2 * 128 * 256)
    assert each == 2
    assert cache_bytes(shape, 256, keys="q8_0", values="q4_0") == 256 * (128 // 32) * (34 + 18)
    assert cache_bytes(shape, 257, keys="f16", values="f16") == cache_bytes(shape, 512, keys="f16", values="f16")


def described(tmp_path: Path, metadata: dict[str, Any]) -> Description:
    return read_description(attention_toy().having(metadata).write(tmp_path / "x.gguf"), "target")


def test_heads_of_another_size_and_fewer_of_them_are_taken_as_the_file_says(tmp_path: Path) -> None:
    settings = {"llama.attention.head_count_kv": [1, 2], "llama.attention.key_length": 8}
    shape = described(tmp_path, {**settings, "llama.attention.value_length": 4}).shape
    assert (shape.keys, shape.values) == (3 * 8, 3 * 4)


def test_layers_that_share_the_keys_of_others_and_sliding_ones_count_as_what_they_keep(tmp_path: Path) -> None:
    shared = described(tmp_path, {"llama.attention.shared_kv_layers": 1}).shape
    assert (shared.keys, shared.values) == (64, 64)
    pattern = {"llama.attention.sliding_window_pattern": [True, False], "llama.attention.key_length_swa": 4}
    sliding = described(tmp_path, {**pattern, "llama.attention.value_length_swa": 2}).shape
    assert (sliding.keys, sliding.values) == (4 * 4 + 64, 4 * 2 + 64)


def test_latent_attention_keeps_no_values(tmp_path: Path) -> None:
    latent = {"llama.attention.key_length_mla": 16, "llama.attention.value_length_mla": 16}
    assert described(tmp_path, latent).shape.values == 0


def test_special_tokens_and_the_template_are_what_the_file_says(tmp_path: Path) -> None:
    about = described(tmp_path, {"tokenizer.ggml.eot_token_id": 258})
    assert about.special == {"beginning of text": BOS, "end of text": EOS, "end of turn": 258}
    assert (about.splitter, about.has_template) == ("default", True)
    assert about.weights == about.path.stat().st_size
    assert not described(tmp_path, {"tokenizer.chat_template": None}).has_template


def test_later_parts_count_and_are_checked(tmp_path: Path) -> None:
    first, second = attention_toy().write(tmp_path / "1.gguf"), attention_toy().write(tmp_path / "2.gguf")
    about = read_description(first, "target", [second])
    assert about.weights == first.stat().st_size + second.stat().st_size
    second.write_bytes(second.read_bytes()[:-1000])
    with pytest.raises(ModelError, match=r"target .*2\.gguf is cut short"):
        read_description(first, "target", [second])


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_text("<!doctype html>")
    with pytest.raises(ModelError, match="is a web page, not a model"):
        read_description(tmp_path / "x.gguf", "target")
