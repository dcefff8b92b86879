"""A trained draft as a GGUF file: llama.cpp's `llama` kind, with the target's tokenizer, quantised by the bindings."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader, GGUFValueType, GGUFWriter

from specdec_cli.distil.checkpoint import Checkpoint, read_checkpoint
from specdec_cli.distil.shape import Shape
from specdec_cli.errors import UsageError
from specdec_cli.files import target_of
from specdec_cli.llama.gguf import MAGIC, read_vocabulary
from specdec_cli.llama.quantising import quantise
from specdec_cli.terminal import ONE_LINE

TOKENIZER: Final = "tokenizer."
"""How the keys begin that a draft takes over from its target."""

BLOCK: Final = 256
K_KINDS: Final = {"q6_k", "q5_k", "q4_k"}
"""Kinds whose blocks have so many weights: llama.cpp makes another kind of a row that they do not fill, or gives up."""

Tensors = Mapping[str, npt.NDArray[np.float32]]


def export_draft(
    training: Path, target: Path, output: Path, *, kind: str, embedding_kind: str, licence: str | None = None
) -> str:
    """Write the best network of a training into `output` as a draft of `target`; what that is, in a line.

    Matrices are quantised to `kind`, the embeddings, which are the head too, to `embedding_kind`.

    Raises:
        UsageError: the checkpoint cannot be read or used, or the draft not be written.
        ModelError: the target cannot be read, or the quantisation failed.
    """
    found = read_checkpoint(training)
    if found.owner != read_vocabulary(target, "target").fingerprint.hex():
        raise UsageError(f"training {training} is for a target with another vocabulary than that of {target}")
    if not found.alpha:
        raise UsageError(f"training {training} has no epoch behind it yet", hint="let specdec distil train go on")
    refused = ", ".join(sorted({kind, embedding_kind} & K_KINDS)) if found.shape.width % BLOCK else ""
    if refused:
        raise UsageError(
            f"a draft of width {found.shape.width} cannot have type {refused}",
            hint=f"that takes a multiple of {BLOCK}; q8_0, q5_1, q5_0, q4_1 and q4_0 take any width",
        )
    try:
        place = _checked(output, target)
        with tempfile.TemporaryDirectory(prefix=".specdec-", dir=place.parent) as folder:
            exact, small = Path(folder) / "exact.gguf", Path(folder) / "small.gguf"
            _write(exact, found.shape, _expanded(found), GGUFReader(target), licence)
            quantise(exact, small, kind, embedding_kind)
            small.replace(place)
    except OSError as error:
        raise UsageError(
            f"draft {output} cannot be written: {error.strerror or error}", hint="name a file with -o"
        ) from None
    size = place.stat().st_size / 1e6
    name = str(output).translate(ONE_LINE)
    return f"{name}: {size:.1f} MB; before it was quantised α was {found.alpha:.3f} on answers kept out of its training"


def _checked(output: Path, target: Path) -> Path:
    """Where the draft goes: a new file, or one that holds a model, but not the target."""
    place = target_of(output)
    if place == target.resolve():
        raise UsageError(f"draft {output} would replace its target", hint="name another file with -o")
    if place.exists():
        with place.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise UsageError(f"{output} is there and is no GGUF file", hint="name another file with -o")
    return place


def _expanded(found: Checkpoint) -> Tensors:
    """The best network with a row of embeddings for each id: that of the others for those that are not known."""
    tensors = {name: weight.numpy() for name, weight in found.best.items()}
    rows = found.vocabulary.compact(np.arange(found.vocabulary.size))
    return {**tensors, "token_embd.weight": tensors["token_embd.weight"][rows]}


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
        if name.startswith(TOKENIZER) and len(field.data):  # gguf writes no empty list
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
