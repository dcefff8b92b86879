"""A trained draft as a GGUF file: llama.cpp's `llama` kind, with the target's tokenizer, quantised by the bindings."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader, GGUFValueType, GGUFWriter

from specdec_cli.distil.checkpoint import read_checkpoint
from specdec_cli.distil.lessons import Vocabulary
from specdec_cli.distil.shape import Shape
from specdec_cli.errors import UsageError
from specdec_cli.files import target_of
from specdec_cli.llama.gguf import read_vocabulary
from specdec_cli.llama.quantising import quantise
from specdec_cli.terminal import ONE_LINE

TOKENIZER: Final = "tokenizer."
"""How the keys begin that a draft takes over from its target."""

Tensors = Mapping[str, npt.NDArray[np.float32]]


def export_draft(
    training: Path, target: Path, output: Path, *, kind: str, embedding_kind: str, licence: str | None = None
) -> str:
    """Write the best network of a training into `output` as a draft of `target`; what that is, in a line.

    Matrices are quantised to `kind`, the embeddings, which are the head too, to `embedding_kind`.

    Raises:
        UsageError: the checkpoint cannot be read, or the draft not be written.
        ModelError: the target cannot be read, or the quantisation failed.
    """
    found = read_checkpoint(training)
    if len(read_vocabulary(target, "target").tokens) != found.vocabulary.size:
        raise UsageError(f"training {training} is about another vocabulary than that of target {target}")
    tensors = {name: weight.numpy() for name, weight in found.best.items()}
    try:
        place = target_of(output)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            exact, small = Path(folder) / "exact.gguf", Path(folder) / "small.gguf"
            _write(exact, found.shape, _expanded(tensors, found.vocabulary), GGUFReader(target), licence)
            quantise(exact, small, kind, embedding_kind)
            small.replace(place)
    except OSError as error:
        raise UsageError(f"draft {output} cannot be written: {error.strerror}") from None
    size = place.stat().st_size / 1e6
    return f"{str(output).translate(ONE_LINE)}: {size:.1f} MB, α {found.alpha:.3f} on answers kept out of its training"


def _expanded(tensors: Tensors, vocabulary: Vocabulary) -> dict[str, npt.NDArray[np.float32]]:
    """With a row of embeddings for each id of the target: that of the others for those that are not known."""
    rows = tensors["token_embd.weight"]
    return {**tensors, "token_embd.weight": rows[vocabulary.compact(np.arange(vocabulary.size))]}


def _write(path: Path, shape: Shape, tensors: Tensors, target: GGUFReader, licence: str | None) -> None:
    writer = GGUFWriter(path, "llama")
    if licence is not None:
        writer.add_license(licence)
    writer.add_name(f"A draft of {_value(target, 'general.name', 'its target')}")
    writer.add_context_length(_value(target, f"{_value(target, 'general.architecture', '')}.context_length", 4096))
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_vocab_size(len(tensors["token_embd.weight"]))
    for name, field in target.fields.items():
        if name.startswith(TOKENIZER):
            inner = field.types[1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], inner)
    for name, tensor in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(tensor, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _value(reader: GGUFReader, name: str, default: Any) -> Any:
    field = reader.get_field(name)
    return default if field is None else field.contents()
