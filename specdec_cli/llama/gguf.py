"""What a model file says about itself, read in milliseconds and before any weight: is it usable, and as what.

ggml's own reader does the parsing, so that what passes here is what llama.cpp will see. Every check is one
that llama.cpp would answer with an assertion, with a page of log, or only after minutes of loading.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from specdec_cli.errors import ModelError
from specdec_cli.llama.gguf_values import Scalar, Values
from specdec_cli.llama.library import clear_log, ggml, llama, log_errors
from specdec_cli.vocabulary import Vocabulary

MAGIC: Final = b"GGUF"
LOOKALIKES: Final = (
    (b"version https://git-lfs", "is a Git LFS pointer, not the model itself", "fetch it with: git lfs pull"),
    (b"<!doctype html", "is a web page, not a model", "download the file itself, not the page that shows it"),
    (b"<html", "is a web page, not a model", "download the file itself, not the page that shows it"),
    (
        b"pk\x03\x04",
        "is a zip archive or a PyTorch file, not GGUF",
        "convert it with llama.cpp's convert_hf_to_gguf.py",
    ),
    (b"lmgg", "is in the old GGML format", "download or convert a GGUF version of the model"),
    (b"tjgg", "is in the old GGJT format", "download or convert a GGUF version of the model"),
)
NO_WEIGHTS: Final = {9: "Q8_1", 15: "Q8_K", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64"}
"""Tensor types that ggml can store and not multiply with: it would jump to address 0."""
INDEXES: Final = b"tid2eid"
"""In the name of a tensor that is looked up in, not multiplied with; it is I32."""
LARGEST_CONTEXT: Final = 2**31 - 1
MOST_LAYERS: Final = 512
"""LLAMA_MAX_LAYERS."""


def read_vocabulary(path: Path, role: str) -> Vocabulary:
    """Check that `path` holds a whole model and read its vocabulary. `role` is "target" or "draft".

    Raises:
        ModelError: the file cannot be opened, is not a model, or is cut short.
    """
    with opened_model(path, role) as (_, values):
        return to_vocabulary(values, path, role)


@contextmanager
def opened_model(path: Path, role: str) -> Iterator[tuple[int, Values]]:
    """ggml's handle of the metadata of `path`, and look-ups in it, once it is checked to be a whole model.

    Raises:
        ModelError: as `read_vocabulary`.
    """
    check_file(path, role)
    with _opened(path, role) as context:
        values = Values(context)
        _check_whole(context, path, role, split=(values.number("split.count") or 0) > 1)
        _check_kind(values, path, role)
        _check_types(context, path, role)
        yield context, values


@contextmanager
def opened_part(path: Path, role: str) -> Iterator[int]:
    """ggml's handle of the metadata of `path`, a later part of a model.

    Raises:
        ModelError: the file cannot be opened, is not a GGUF file, or is cut short.
    """
    check_file(path, role)
    with _opened(path, role) as context:
        _check_whole(context, path, role, split=True)
        yield context


def tensor_names(context: int) -> list[str]:
    """The names of all tensors."""
    name = ggml("gguf_get_tensor_name", ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int64))
    count = ggml("gguf_get_n_tensors", ctypes.c_int64, (ctypes.c_void_p,))(context)
    return [name(context, index).decode("utf-8", "replace") for index in range(count)]


def tensor_sizes(context: int) -> dict[str, int]:
    """The bytes of all tensors, by their names."""
    size = ggml("gguf_get_tensor_size", ctypes.c_size_t, (ctypes.c_void_p, ctypes.c_int64))
    return {name: size(context, index) for index, name in enumerate(tensor_names(context))}


def to_vocabulary(values: Values, path: Path, role: str) -> Vocabulary:
    """The vocabulary of the model `path`, by its metadata.

    Raises:
        ModelError: it has none.
    """
    tokens = values.strings("tokenizer.ggml.tokens")
    if not tokens:
        raise ModelError(f"{role} {path} has no vocabulary", hint="it may be a part of a model, such as a projector")
    return Vocabulary(
        source=str(path),
        model=values.text("tokenizer.ggml.model"),
        tokens=tokens,
        bos=values.number("tokenizer.ggml.bos_token_id"),
        add_bos=values.flag("tokenizer.ggml.add_bos_token"),
        kinds=values.integers("tokenizer.ggml.token_type"),
    )


def read_scalars(path: Path, role: str, keys: Iterable[str]) -> dict[str, Scalar]:
    """What `path` says under those of `keys` that it has.

    Raises:
        ModelError: the file does not parse.
    """
    with _opened(path, role) as context:
        values = Values(context)
        return {key: values.scalar(key) for key in keys if values.has(key)}


def check_file(path: Path, role: str) -> None:
    """Refuse what is no GGUF file by its first bytes, and say what it is instead.

    Raises:
        ModelError: the file cannot be opened, or is something else.
    """
    start = _read_start(path, role)
    if not start:
        raise ModelError(f"{role} {path} is empty", hint="the download may have failed; fetch it again")
    for prefix, reason, hint in LOOKALIKES:
        if start.lower().lstrip().startswith(prefix):
            raise ModelError(f"{role} {path} {reason}", hint=hint)
    if not start.startswith(MAGIC):
        raise ModelError(f"{role} {path} is not a GGUF file", hint="specdec loads models in llama.cpp's GGUF format")


def _read_start(path: Path, role: str) -> bytes:
    try:
        if path.is_dir():
            raise ModelError(f"{role} {path} is a folder", hint="give the .gguf file inside it")
        if path.exists() and not path.is_file():
            raise ModelError(f"{role} {path} is a pipe or a device", hint="llama.cpp maps a file into memory")
        with path.open("rb") as file:
            return file.read(64)
    except FileNotFoundError:
        is_url = str(path).startswith(("http:", "https:"))
        hint = "download the file first" if is_url else "check the path; -m and -d take GGUF files"
        raise ModelError(f"{role} {path} does not exist", hint=hint) from None
    except ValueError:
        raise ModelError(f"{role} {path} cannot be read: its name holds a zero byte", hint="check the path") from None
    except OSError as error:
        raise ModelError(f"{role} {path} cannot be read: {error.strerror}", hint="check its permissions") from None


class _InitParams(ctypes.Structure):
    _fields_ = (("no_alloc", ctypes.c_bool), ("context", ctypes.c_void_p))


@contextmanager
def _opened(path: Path, role: str) -> Iterator[int]:
    llama()
    clear_log()
    context = ggml("gguf_init_from_file", ctypes.c_void_p, (ctypes.c_char_p, _InitParams))(
        os.fsencode(path), _InitParams(True, None)
    )
    if not context:
        reason = log_errors() or "its header does not parse"
        raise ModelError(f"{role} {path} is damaged or cut short: {reason}", hint="fetch the file again")
    try:
        yield context
    finally:
        ggml("gguf_free", None, (ctypes.c_void_p,))(context)


def _check_whole(context: int, path: Path, role: str, *, split: bool) -> None:
    """The file reaches as far as its last tensor; one without any holds a vocabulary only, or begins a split model."""
    count = ggml("gguf_get_n_tensors", ctypes.c_int64, (ctypes.c_void_p,))(context)
    if count == 0 and split:
        return
    if count == 0:
        raise ModelError(f"{role} {path} holds a vocabulary and no weights", hint="give the model itself")
    offset = ggml("gguf_get_tensor_offset", ctypes.c_size_t, (ctypes.c_void_p, ctypes.c_int64))
    size = ggml("gguf_get_tensor_size", ctypes.c_size_t, (ctypes.c_void_p, ctypes.c_int64))
    data = ggml("gguf_get_data_offset", ctypes.c_size_t, (ctypes.c_void_p,))(context)
    needed = data + max(offset(context, index) + size(context, index) for index in range(count))
    actual = path.stat().st_size
    if actual < needed:
        raise ModelError(
            f"{role} {path} is cut short: {actual:,} of {needed:,} bytes", hint="the download is not complete"
        )


def _check_kind(values: Values, path: Path, role: str) -> None:
    kind = values.text("general.type") or "model"
    if kind != "model":
        raise ModelError(
            f'{role} {path} is of type "{kind}", not a language model', hint="give the model that it belongs to"
        )
    part, parts = values.number("split.no"), values.number("split.count")
    if part and parts:
        raise ModelError(
            f"{role} {path} is part {part + 1} of {parts}", hint="give the first part; the others are found beside it"
        )
    architecture = values.text("general.architecture")
    if values.flag(f"{architecture}.attention.causal") is False:
        raise ModelError(
            f"{role} {path} is an encoder or a diffusion model ({architecture}): it cannot continue a text",
            hint="give a decoder-only language model",
        )
    trained = values.number(f"{architecture}.context_length")
    if trained is not None and not 0 < trained <= LARGEST_CONTEXT:
        raise ModelError(f"{role} {path} is damaged: a context length of {trained}", hint="fetch the file again")
    layers = next(iter(values.numbers(f"{architecture}.block_count")), 0)
    if not 0 <= layers <= MOST_LAYERS:
        raise ModelError(f"{role} {path} has {layers} layers: llama.cpp takes 0..{MOST_LAYERS}", hint="fetch it again")


def _check_types(context: int, path: Path, role: str) -> None:
    kind = ggml("gguf_get_tensor_type", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int64))
    name = ggml("gguf_get_tensor_name", ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int64))
    for index in range(ggml("gguf_get_n_tensors", ctypes.c_int64, (ctypes.c_void_p,))(context)):
        unusable = NO_WEIGHTS.get(kind(context, index))
        if unusable and INDEXES not in name(context, index):
            raise ModelError(
                f"{role} {path} holds {name(context, index).decode('utf-8', 'replace')} as {unusable}, "
                "which llama.cpp cannot compute with",
                hint="convert the model again, as F16 or quantised",
            )
