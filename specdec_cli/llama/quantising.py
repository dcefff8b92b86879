"""Making the matrices of a model file smaller, by the bindings."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from specdec_cli.errors import ModelError
from specdec_cli.llama.library import clear_log, during, llama, log_errors

KINDS: Final = {
    "f32": (0, 0),
    "f16": (1, 1),
    "q8_0": (7, 8),
    "q6_k": (18, 14),
    "q5_k": (17, 13),
    "q5_1": (9, 7),
    "q5_0": (8, 6),
    "q4_k": (15, 12),
    "q4_1": (3, 3),
    "q4_0": (2, 2),
}
"""llama.cpp's numbers of a kind: of a file, and of a tensor."""


def quantise(source: Path, destination: Path, kind: str, embedding_kind: str) -> None:
    """Write `source` to `destination` with matrices of `kind` and embeddings of `embedding_kind`, both of `KINDS`.

    Raises:
        ModelError: llama.cpp cannot.
    """
    params = llama().llama_model_quantize_default_params()
    params.ftype, kind_of_tensor = KINDS[kind]
    params.pure = kind_of_tensor > 1  # llama.cpp would make some matrices larger, and then the file
    params.token_embedding_type = KINDS[embedding_kind][1]
    clear_log()
    with during(f"quantising {source}"):
        status = llama().llama_model_quantize(os.fsencode(source), os.fsencode(destination), ctypes.byref(params))
    if status:
        raise ModelError(f"a model of kind {kind} cannot be written: {log_errors() or f'code {status}'}")
