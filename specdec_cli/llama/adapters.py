"""LoRA adapters: low-rank changes of a model's weights, from files of their own.

llama.cpp frees those that a model has together with the model. What is checked here is what it would answer
with an assertion, and what it would apply wrongly: an activated LoRA counts from certain tokens on only.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from specdec_cli.errors import ModelError
from specdec_cli.llama.gguf import check_file, read_scalars
from specdec_cli.llama.library import clear_log, during, llama, log_errors

TYPE: Final = "general.type"
ARCHITECTURE: Final = "general.architecture"
KIND: Final = "adapter.type"
ALPHA: Final = "adapter.lora.alpha"
ACTIVATION: Final = "adapter.alora.invocation_tokens"
PREFIX: Final = "failed to apply lora adapter: "


@dataclass(frozen=True, slots=True)
class Adapter:
    """A loaded adapter, llama.cpp's pointer, and how much of it is applied: 1 is what it was trained for."""

    pointer: Any
    scale: float


def load_adapter(model: Any, path: Path, scale: float, role: str) -> Adapter:
    """Load the LoRA in `path` for `model`, the pointer of a loaded model that errors call `role`.

    Raises:
        ModelError: the file is missing or damaged, is not a LoRA, or belongs to another model.
    """
    name = f"{role} adapter"
    _check_lora(path, name)
    clear_log()
    with during(f"loading {name} {path}"):
        pointer = llama().llama_adapter_lora_init(model, os.fsencode(path))
    if not pointer:
        reason = log_errors().removeprefix(PREFIX) or "llama.cpp does not say why"
        raise ModelError(f"{name} {path} does not fit the {role}: {reason}", hint=f"was it made for another {role}?")
    return Adapter(pointer, scale)


def apply_adapters(context: Any, adapters: Sequence[Adapter]) -> None:
    """Let every pass of `context`, one that has evaluated nothing yet, apply `adapters`."""
    count = len(adapters)
    pointers = (llama().llama_adapter_lora_p_ctypes * count)(*(adapter.pointer for adapter in adapters))
    scales = (ctypes.c_float * count)(*(adapter.scale for adapter in adapters))
    llama().llama_set_adapters_lora(context, pointers, count, scales)


def _check_lora(path: Path, name: str) -> None:
    check_file(path, name)
    about = read_scalars(path, name, (TYPE, ARCHITECTURE, KIND, ALPHA, ACTIVATION))
    hint = "give a LoRA adapter, as llama.cpp's convert_lora_to_gguf.py writes it"
    if about.get(TYPE) != "adapter":
        raise ModelError(f"{name} {path} is not an adapter", hint=hint)
    if about.get(KIND) != "lora":
        raise ModelError(f'{name} {path} is an adapter of type "{about.get(KIND)}", not a LoRA', hint=hint)
    for key, kind, word in ((ARCHITECTURE, str, "text"), (ALPHA, float, "float")):
        if key in about and not isinstance(about[key], kind):
            raise ModelError(f"{name} {path} is damaged: its {key} is not a {word}", hint="convert the adapter again")
    if ACTIVATION in about:
        raise ModelError(f"{name} {path} is an activated LoRA, which is not supported", hint=hint)
