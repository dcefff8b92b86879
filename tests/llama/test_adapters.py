from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from specdec_cli.catalog import Pair
from specdec_cli.errors import ModelError
from specdec_cli.llama.context import Context
from specdec_cli.llama.context_options import ContextOptions
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import llama
from specdec_cli.llama.placement import Placement
from specdec_cli.llama.weights import Weights, load_weights
from tests.engine import decode
from tests.statistical import emitted
from tests.toy_gguf import WIDTH, Matrix, attention_toy
from tests.toy_kinds import kind_toy

PROMPT = list(b"The quick brown fox")
TARGET = attention_toy(3.0)
QUERY = "blk.0.attn_q.weight"
ALPHA = 2.0
RANK = 2


def lora(path: Path, *, tensor: str = QUERY, width: int = WIDTH, metadata: Mapping[str, Any] | None = None) -> Path:
    """A LoRA of rank 2 on one square `tensor`."""
    generator = np.random.default_rng(4)
    shapes = {f"{tensor}.lora_a": (RANK, width), f"{tensor}.lora_b": (width, RANK)}
    tensors = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    own = {
        "general.type": "adapter",
        "general.architecture": "llama",
        "adapter.type": "lora",
        "adapter.lora.alpha": ALPHA,
    }
    nothing = {"tokenizer.ggml.tokens": None, "tokenizer.ggml.token_type": None}
    return replace(TARGET, tensors=tensors, metadata={**own, **nothing, **(metadata or {})}).write(path)


def load(path: Path, adapters: list[tuple[Path, float]], role: str = "target") -> Weights:
    return load_weights(
        path, role, placement=Placement(), interrupt=Interrupt(), on_progress=lambda _: None, lora=adapters
    )


def rows_and_text(path: Path, adapters: list[tuple[Path, float]]) -> tuple[Matrix, list[int]]:
    """Logits after the prompt, and the greedy text."""
    options = ContextOptions(
        size=512, batch=64, rows=4, threads=1, flash_attention="off", cache_type_k="f32", cache_type_v="f32"
    )
    with ExitStack() as stack:
        weights = load(path, adapters)
        stack.callback(weights.close)
        context = Context(weights, options, Interrupt())
        stack.callback(context.close)
        rows = context.extend(PROMPT, rows=1)[0].copy()
        return rows, emitted(decode(context, None, PROMPT))


def merged(path: Path, adapter: Path, scale: float) -> Path:
    """The target with the adapter worked into its weights."""
    tensors = {tensor.name: tensor.data for tensor in gguf.GGUFReader(adapter).tensors}
    change = tensors[f"{QUERY}.lora_b"] @ tensors[f"{QUERY}.lora_a"] * np.float32(scale * ALPHA / RANK)
    return replace(TARGET, tensors={**TARGET.tensors, QUERY: TARGET.tensors[QUERY] + change}).write(path)


@pytest.mark.parametrize("scale", [1.0, 0.5, -2.0])
def test_an_adapter_changes_the_text_as_if_it_were_in_the_weights(
    attention_pair: Pair, tmp_path: Path, scale: float
) -> None:
    adapter = lora(tmp_path / "lora.gguf")
    row, text = rows_and_text(attention_pair.target, [(adapter, scale)])
    expected, expected_text = rows_and_text(merged(tmp_path / "merged.gguf", adapter, scale), [])
    np.testing.assert_allclose(row, expected, atol=1e-4)
    assert text == expected_text
    assert text != rows_and_text(attention_pair.target, [])[1]


def test_at_scale_zero_nothing_changes(attention_pair: Pair, tmp_path: Path) -> None:
    row, text = rows_and_text(attention_pair.target, [(lora(tmp_path / "lora.gguf"), 0.0)])
    expected, expected_text = rows_and_text(attention_pair.target, [])
    assert (row == expected).all()
    assert text == expected_text


def test_adapters_add_up(attention_pair: Pair, tmp_path: Path) -> None:
    adapter = lora(tmp_path / "lora.gguf")
    both, _ = rows_and_text(attention_pair.target, [(adapter, 0.25), (adapter, 0.75)])
    once, _ = rows_and_text(attention_pair.target, [(adapter, 1.0)])
    np.testing.assert_allclose(both, once, atol=1e-4)


def test_recurrent_models_take_adapters(tmp_path: Path) -> None:
    mamba = kind_toy("mamba", 3.0).write(tmp_path / "mamba.gguf")
    tensor = "blk.0.ssm_out.weight"
    shapes = {f"{tensor}.lora_a": (RANK, 2 * WIDTH), f"{tensor}.lora_b": (WIDTH, RANK)}
    tensors = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    metadata = {"general.type": "adapter", "general.architecture": "mamba", "adapter.type": "lora"}
    adapter = replace(TARGET, tensors=tensors, metadata=metadata).write(tmp_path / "lora.gguf")
    assert rows_and_text(mamba, [(adapter, 1.0)])[1] != rows_and_text(mamba, [])[1]


@pytest.mark.parametrize(
    ("about", "complaint"),
    [
        ({"metadata": {"general.type": "model"}}, "is not an adapter"),
        ({"metadata": {"general.type": None}}, "is not an adapter"),
        ({"metadata": {"general.type": 7}}, "is not an adapter"),
        ({"metadata": {"adapter.type": "ia3"}}, 'is an adapter of type "ia3", not a LoRA'),
        ({"metadata": {"adapter.type": None}}, "is an adapter of type"),
        ({"metadata": {"adapter.lora.alpha": 2}}, "is damaged: its adapter.lora.alpha is not a float"),
        ({"metadata": {"adapter.alora.invocation_tokens": [1, 2]}}, "is an activated LoRA, which is not supported"),
        ({"metadata": {"general.architecture": 7}}, "is damaged: its general.architecture is not a text"),
        ({"metadata": {"general.architecture": "qwen2"}}, "does not fit the draft: .*mismatch"),
        ({"metadata": {"general.architecture": None}}, "does not fit the draft: .*mismatch"),
        ({"tensor": "blk.9.attn_q.weight"}, "does not fit the draft: .*does not exist in base model"),
        ({"width": 32}, "does not fit the draft: .*incorrect shape"),
    ],
    ids=str,
)
def test_an_adapter_that_does_not_fit_is_an_error_of_one_line(
    attention_pair: Pair, tmp_path: Path, about: dict[str, Any], complaint: str
) -> None:
    path = lora(tmp_path / "lora.gguf", **about)
    with pytest.raises(ModelError, match=f"^draft adapter {path} {complaint}") as caught:
        load(attention_pair.target, [(path, 1.0)], "draft")
    assert "\n" not in str(caught.value)


def test_what_is_no_adapter_at_all_is_told_as_what_it_is(attention_pair: Pair, tmp_path: Path) -> None:
    whole = lora(tmp_path / "lora.gguf").read_bytes()
    files = {"missing": None, "empty": b"", "text": b"hello, this is a text", "cut": whole[:-100], "header": whole[:90]}
    complaints = {
        "missing": "does not exist",
        "empty": "is empty",
        "text": "is not a GGUF file",
        "cut": "does not fit the target: .*incomplete",
        "header": "is damaged or cut short",
    }
    for name, content in files.items():
        path = tmp_path / f"{name}.gguf"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ModelError, match=f"^target adapter {path} {complaints[name]}"):
            load(attention_pair.target, [(path, 1.0)])
    with pytest.raises(ModelError, match="is not an adapter"):
        load(attention_pair.target, [(attention_pair.target, 1.0)])


def test_the_weights_are_freed_when_an_adapter_does_not_fit(
    attention_pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[object] = []
    free = llama().llama_model_free

    def record(model: object) -> None:
        freed.append(model)
        free(model)

    monkeypatch.setattr(llama(), "llama_model_free", record)
    good, bad = lora(tmp_path / "good.gguf"), lora(tmp_path / "bad.gguf", width=32)
    with pytest.raises(ModelError):
        load(attention_pair.target, [(good, 1.0), (bad, 1.0)])
    assert len(freed) == 1
