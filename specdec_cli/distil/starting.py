"""What a draft starts from: the leading principal directions of its target's own embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader
from gguf.quants import dequantize

from specdec_cli.distil.lessons import Vocabulary
from specdec_cli.errors import ModelError

SPREAD: Final = 0.04
"""Standard deviation of the embeddings at the start."""


def principal_embeddings(target: Path, vocabulary: Vocabulary, width: int) -> npt.NDArray[np.float32]:
    """Rows [vocabulary.rows, width] whose inner products are those of the target's, as nearly as `width` allows.

    Raises:
        ModelError: the file has no embeddings, or fewer directions.
    """
    tensor = next((each for each in GGUFReader(target).tensors if each.name == "token_embd.weight"), None)
    if tensor is None:
        raise ModelError(
            f"target {target} holds no embeddings in its first file", hint="merge its parts with llama-gguf-split"
        )
    try:
        rows = dequantize(tensor.data[vocabulary.known], tensor.tensor_type).astype(np.float64)
    except (NotImplementedError, ValueError):
        kind = tensor.tensor_type.name
        raise ModelError(
            f"embeddings of kind {kind} in target {target} cannot be read", hint="install a newer gguf"
        ) from None
    if rows.shape[1] < width:
        raise ModelError(
            f"a draft of width {width} is wider than target {target}, which has {rows.shape[1]}",
            hint="give a smaller --width",
        )
    _, directions = np.linalg.eigh(rows.T @ rows)
    leading = rows @ directions[:, ::-1][:, :width]
    leading *= SPREAD / leading.std()
    return np.concatenate([leading, np.zeros((1, width))]).astype(np.float32)
