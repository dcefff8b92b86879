"""What a model file says about itself that decides how it can be used, read in a tenth of a second."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specdec_cli.llama.context_options import CACHE_TYPES
from specdec_cli.llama.gguf import opened_model, opened_part, tensor_names, to_vocabulary
from specdec_cli.llama.gguf_shape import Shape, to_shape
from specdec_cli.llama.library import ggml
from specdec_cli.vocabulary import Vocabulary

SPECIAL: Final = {
    "beginning of text": "bos",
    "end of text": "eos",
    "end of turn": "eot",
    "padding": "padding",
}
"""Tokens with a meaning, and what their keys in the metadata begin with."""
CONTEXT_STEP: Final = 256
"""llama.cpp rounds the size of a context up to a multiple of this."""
BYTES_OF_STATE: Final = 4
"""Recurrent states are F32."""


@dataclass(frozen=True, slots=True)
class Description:
    """A model by its metadata. `special` are the ids of the tokens of `SPECIAL` that it names; `weights` are bytes."""

    path: Path
    vocabulary: Vocabulary
    splitter: str
    special: Mapping[str, int]
    shape: Shape
    weights: int
    has_template: bool


def read_description(path: Path, role: str, later_parts: Sequence[Path] = ()) -> Description:
    """The description of the model `path`, which `later_parts` continue.

    Raises:
        ModelError: a file cannot be opened, is not a model, or is cut short.
    """
    with opened_model(path, role) as (context, values):
        tensors = tensor_names(context)
        for part in later_parts:
            with opened_part(part, role) as more:
                tensors += tensor_names(more)
        ids = {name: values.number(f"tokenizer.ggml.{key}_token_id") for name, key in SPECIAL.items()}
        return Description(
            path=path,
            vocabulary=to_vocabulary(values, path, role),
            splitter=values.text("tokenizer.ggml.pre"),
            special={name: token for name, token in ids.items() if token is not None},
            shape=to_shape(values, tensors),
            weights=sum(each.stat().st_size for each in (path, *later_parts)),
            has_template=bool(values.text("tokenizer.chat_template")),
        )


def cache_bytes(shape: Shape, size: int, *, keys: str, values: str) -> int:
    """Bytes of the cache of `size` tokens, `keys` and `values` in these types of `CACHE_TYPES`."""
    rounded = -(-size // CONTEXT_STEP) * CONTEXT_STEP
    return rounded * (_bytes(shape.keys, keys) + _bytes(shape.values, values))


def state_bytes(shape: Shape, states: int) -> int:
    """Bytes of `states` kept states of a recurrent or hybrid model; 0 for others."""
    return shape.state * BYTES_OF_STATE * states


def _bytes(count: int, type_name: str) -> int:
    """Bytes of `count` numbers in a type of `CACHE_TYPES`, which stores them in blocks."""
    kind = CACHE_TYPES[type_name]
    block = ggml("ggml_blck_size", ctypes.c_int64, (ctypes.c_int,))(kind)
    return int(-(-count // block) * ggml("ggml_type_size", ctypes.c_size_t, (ctypes.c_int,))(kind))
