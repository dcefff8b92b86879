from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import pytest

from specdec_cli.llama.sampling_defaults import Default, read_sampling_defaults
from tests.toy_gguf import attention_toy

Kind: Any = gguf.GGUFValueType


def _read(path: Path, values: dict[str, tuple[Any, Any]]) -> tuple[dict[str, Default], tuple[str, ...]]:
    writer = gguf.GGUFWriter(path / "model.gguf", "llama")
    for key, (value, kind) in values.items():
        writer.add_key_value(f"general.sampling.{key}", value, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return read_sampling_defaults(path / "model.gguf", "target")


def test_a_file_that_recommends_nothing_says_nothing(tmp_path: Path) -> None:
    path = attention_toy().write(tmp_path / "model.gguf")
    assert read_sampling_defaults(path, "target") == ({}, ())


def test_what_a_file_recommends_is_named_as_the_chain_names_it(tmp_path: Path) -> None:
    values, ignored = _read(
        tmp_path,
        {
            "sequence": ("top_k;temperature", Kind.STRING),
            "top_k": (20, Kind.INT32),
            "top_p": (0.8, Kind.FLOAT32),
            "min_p": (0.1, Kind.FLOAT32),
            "xtc_probability": (0.25, Kind.FLOAT32),
            "xtc_threshold": (0.5, Kind.FLOAT32),
            "temp": (0.7, Kind.FLOAT32),
            "penalty_last_n": (-1, Kind.INT32),
            "penalty_repeat": (1.05, Kind.FLOAT32),
            "mirostat": (0, Kind.INT32),
            "mirostat_tau": (5.0, Kind.FLOAT32),
        },
    )
    assert values == {
        "samplers": "top_k;temperature",
        "top_k": 20,
        "top_p": 0.8,
        "min_p": 0.1,
        "xtc_probability": 0.25,
        "xtc_threshold": 0.5,
        "temperature": 0.7,
        "repeat_last_n": -1,
        "repeat_penalty": 1.05,
    }
    assert ignored == ()


@pytest.mark.parametrize("kind", [Kind.UINT8, Kind.INT8, Kind.UINT16, Kind.INT16, Kind.UINT32, Kind.INT32])
def test_any_whole_type_will_do(tmp_path: Path, kind: Any) -> None:
    assert _read(tmp_path, {"top_k": (20, kind), "temp": (1, kind)})[0] == {"top_k": 20, "temperature": 1.0}


@pytest.mark.parametrize("kind", [Kind.UINT64, Kind.INT64, Kind.FLOAT32, Kind.FLOAT64])
def test_any_long_or_broken_type_will_do(tmp_path: Path, kind: Any) -> None:
    assert _read(tmp_path, {"top_k": (64, kind), "temp": (2, kind)})[0] == {"top_k": 64, "temperature": 2.0}


def test_a_top_k_below_0_is_off_as_it_is_to_llama_cpp(tmp_path: Path) -> None:
    assert _read(tmp_path, {"top_k": (-1, Kind.INT32)})[0] == {"top_k": 0}


@pytest.mark.parametrize(
    ("key", "value", "kind", "told"),
    [
        ("temp", -1.0, Kind.FLOAT32, "temp -1.0 is ignored: it is no number in 0..100"),
        ("temp", float("nan"), Kind.FLOAT32, "temp nan is ignored: it is no number"),
        ("top_p", 7.0, Kind.FLOAT32, "top_p 7.0 is ignored: it is no number in 0..1"),
        ("top_p", "0.9", Kind.STRING, 'top_p "0.9" is ignored'),
        ("top_p", True, Kind.BOOL, "top_p True is ignored"),
        ("top_k", 2.5, Kind.FLOAT32, "top_k 2.5 is ignored: it is no number of tokens"),
        ("top_k", float("inf"), Kind.FLOAT32, "top_k inf is ignored: it is no number of tokens"),
        ("top_k", [1, 2], Kind.ARRAY, "top_k list is ignored: it is no number of tokens"),
        ("penalty_last_n", -2, Kind.INT32, "penalty_last_n -2 is ignored: it is no number of tokens"),
        ("penalty_repeat", 0.0, Kind.FLOAT32, "penalty_repeat 0.0 is ignored: it is no number in 0.01..100"),
        ("sequence", 5, Kind.UINT32, "sequence is ignored: it is no text"),
        ("mirostat", 2, Kind.INT32, "mirostat 2 is ignored: specdec has no such sampler"),
    ],
)
def test_what_is_of_no_use_is_told_and_everything_else_taken(
    tmp_path: Path, key: str, value: Any, kind: Any, told: str
) -> None:
    values, ignored = _read(tmp_path, {key: (value, kind), "min_p": (0.5, Kind.FLOAT32)})
    assert values == {"min_p": 0.5}
    assert [each.startswith(f"the target's general.sampling.{told}") for each in ignored] == [True]
