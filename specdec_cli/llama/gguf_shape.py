"""How much a model keeps for each token and how it can take tokens back, by its metadata alone.

The rules are those of llama.cpp's caches, of which specdec asks for whole ones (`swa_full`): a sliding window does
not make them smaller.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from specdec_cli.llama.gguf_values import Values

Rollback = Literal["attention", "sliding window", "recurrent", "hybrid"]
LAYER: Final = re.compile(r"blk\.(\d+)\.(.+)")
RECURRENT: Final = ("ssm_", "time_mix_", "shortconv.")
KEYS: Final = ("attn_k.", "attn_kv.", "attn_kv_a_mqa.")
FUSED_KEYS: Final = "attn_qkv."
"""Also what the input of a delta net is called, which keeps no keys."""
FIRST_SHARED: Final = {"gemma3n": 20}
"""The layer from which on no own keys are kept, for an architecture that has it in its code."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model keeps: `keys` and `values` numbers for each token, and `state` numbers whatever the length.

    `window` is that of a sliding attention, in tokens; 0 without one.
    """

    architecture: str
    layers: int
    trained_context: int
    keys: int
    values: int
    state: int
    window: int

    @property
    def rollback(self) -> Rollback:
        """How it takes tokens back: by leaving them out of its attention, or from kept states."""
        if self.state:
            return "hybrid" if self.keys else "recurrent"
        return "sliding window" if self.window else "attention"


def to_shape(values: Values, tensors: Sequence[str]) -> Shape:
    """The shape of a model with these metadata and names of tensors."""
    numbers = _Numbers(values)
    layers = numbers.one("block_count")
    recurrent, cached = _kinds_of_layers(tensors)
    keys = kept_values = 0
    for layer in range(layers):
        heads = numbers.key_heads(layer)
        if layer in cached and heads and layer < numbers.first_shared(layers):
            keys += heads * numbers.head_size("key", layer)
            kept_values += 0 if numbers.one("attention.key_length_mla") else heads * numbers.head_size("value", layer)
    return Shape(
        numbers.architecture,
        layers,
        numbers.one("context_length"),
        keys,
        kept_values,
        numbers.state() * len(recurrent),
        numbers.one("attention.sliding_window"),
    )


def _kinds_of_layers(tensors: Sequence[str]) -> tuple[set[int], set[int]]:
    """The layers with a recurrent state, and those that keep keys; a layer can do both."""
    found = [(int(match[1]), match[2]) for match in map(LAYER.match, tensors) if match]
    recurrent = {layer for layer, name in found if name.startswith(RECURRENT)}
    keyed = {layer for layer, name in found if name.startswith(KEYS)}
    fused = {layer for layer, name in found if name.startswith(FUSED_KEYS)}
    return recurrent, keyed | (fused - recurrent)


class _Numbers:
    """The settings of an architecture."""

    def __init__(self, values: Values) -> None:
        self.architecture = values.text("general.architecture")
        self._values = values

    def all(self, name: str) -> list[int]:
        return self._values.numbers(f"{self.architecture}.{name}")

    def one(self, name: str, default: int = 0) -> int:
        return next(iter(self.all(name)), default)

    def key_heads(self, layer: int) -> int:
        each = self.all("attention.head_count_kv") or self.all("attention.head_count")
        return each[layer] if layer < len(each) else next(iter(each), 0)

    def head_size(self, kind: str, layer: int) -> int:
        heads = max(self.all("attention.head_count"), default=0)
        size = self.one(f"attention.{kind}_length", self.one("embedding_length") // heads if heads else 0)
        slides = self.all("attention.sliding_window_pattern")
        if layer < len(slides) and slides[layer]:
            return self.one(f"attention.{kind}_length_swa", size)
        return size

    def first_shared(self, layers: int) -> int:
        return FIRST_SHARED.get(self.architecture, layers - self.one("attention.shared_kv_layers"))

    def state(self) -> int:
        """Numbers in the state of one recurrent layer: what its convolution remembers, and what it sums up."""
        width, heads = self.one("embedding_length"), self.one("attention.head_count")
        if head := self.one("wkv.head_size"):
            return width * (self.one("token_shift_count", 2) + head)
        if cache := self.one("shortconv.l_cache"):
            return width * (cache - 1)
        kernel = max(self.one("ssm.conv_kernel") - 1, 0)
        if head := self.one("kda.head_dim"):
            return heads * head * (3 * kernel + head)
        inner, state = self.one("ssm.inner_size"), self.one("ssm.state_size")
        return kernel * (inner + 2 * self.one("ssm.group_count") * state) + inner * state
