"""Tiny GGUF models of llama's architecture, built in milliseconds; F32, so that equal inputs give equal bits.

Their tokens are the 256 bytes (a token's id is its byte), three control tokens, and what a test adds.
`attention_toy` remembers its context, `memoryless_toy` says what a table says after each token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

BOS, EOS, TURN_END = 256, 257, 258
CONTROL_TOKENS = ("<|bos|>", "<|endoftext|>", "<|im_end|>")
FIRST_EXTRA = 256 + len(CONTROL_TOKENS)
"""The id of the first token that a test adds."""

WIDTH, HEADS, FORWARD = 64, 4, 128
NEVER = -1e4
"""A logit that no temperature brings back."""

TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
Matrix = npt.NDArray[np.float32]
Logits = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Toy:
    """What a file will hold. `metadata` values are written as uint32, uint16, float32, bool, string or array."""

    tensors: Mapping[str, Matrix]
    tokens: tuple[str, ...]
    kinds: tuple[int, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def having(self, metadata: Mapping[str, Any]) -> Toy:
        """The same with other metadata; None leaves a key out."""
        return replace(self, metadata={**self.metadata, **metadata})

    def spelling(self, token: int, text: str) -> Toy:
        """The same with another text for `token`."""
        return replace(self, tokens=(*self.tokens[:token], text, *self.tokens[token + 1 :]))

    def padded(self, count: int, *, pull: float = 0.0) -> Toy:
        """The same with `count` unused ids more, as vocabularies are rounded up, with `pull` × the logit of token 0."""
        tensors = dict(self.tensors)
        for name, factor in (("token_embd.weight", 1.0), ("output.weight", pull)):
            row = tensors[name][:1] * np.float32(factor)
            tensors[name] = np.concatenate([tensors[name], np.repeat(row, count, axis=0)])
        names = tuple(f"[PAD{len(self.tokens) + index}]" for index in range(count))
        return replace(
            self, tensors=tensors, tokens=self.tokens + names, kinds=self.kinds + (gguf.TokenType.UNUSED,) * count
        )

    def write(self, path: Path) -> Path:
        """Write the file; its own path, for chaining."""
        writer = gguf.GGUFWriter(path, "llama")
        writer.kv_data[0].clear()
        kinds = [int(kind) for kind in self.kinds]
        lists = {"tokenizer.ggml.tokens": list(self.tokens), "tokenizer.ggml.token_type": kinds}
        for key, value in {**lists, **self.metadata}.items():
            if value is not None:
                writer.add_key_value(key, value, _value_type(value))
        for name, tensor in self.tensors.items():
            writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path


def attention_toy(scale: float = 1.0, *, extra: Sequence[bytes] = (), seed: int = 7) -> Toy:
    """Two layers with real attention. `scale` sharpens the logits: toys of other scales make a fitting draft."""
    generator = np.random.default_rng(seed)

    def normal(*shape: int, size: float = 0.15) -> Matrix:
        return (generator.standard_normal(shape) * size).astype(np.float32)

    tokens, kinds = _vocabulary(extra)
    tensors = {"token_embd.weight": normal(len(tokens), WIDTH, size=1.0)}
    for layer in range(2):
        tensors |= _layer(layer, lambda *shape: normal(*shape, size=0.15))
    output = normal(len(tokens), WIDTH, size=0.125)
    output[list(range(256, FIRST_EXTRA))] = 0
    tensors |= {"output_norm.weight": np.ones(WIDTH, np.float32), "output.weight": output * np.float32(scale)}
    return Toy(tensors, tokens, kinds, _metadata(layers=2))


def dressed(
    layers: Mapping[str, Matrix],
    architecture: str,
    settings: Mapping[str, Any],
    *,
    scale: float,
    seed: int,
    final_norm: str = "output_norm.weight",
) -> Toy:
    """A toy of another `architecture`: its two `layers` and `settings` with the vocabulary, embedding and output."""
    attention = attention_toy(scale, seed=seed)
    ends = {name: attention.tensors[name] for name in ("token_embd.weight", "output.weight")}
    shared = {name.replace("llama.", f"{architecture}.", 1): value for name, value in attention.metadata.items()}
    own = {f"{architecture}.{name}": value for name, value in settings.items()}
    tensors = {**ends, final_norm: attention.tensors["output_norm.weight"], **layers}
    metadata = {**shared, "general.architecture": architecture, **own}
    return Toy(tensors, attention.tokens, attention.kinds, metadata)


def memoryless_toy(table: Mapping[int, Logits], default: Logits, *, extra: Sequence[bytes] = ()) -> Toy:
    """After each token the logits of its `table` row, or `default`; whatever a row does not name never comes.

    Each row is a direction of the embedding, so there is room for 63 of them. Logits come out as they were given.
    """
    tokens, kinds = _vocabulary(extra)
    embedding, output = np.zeros((len(tokens), WIDTH), np.float32), np.zeros((len(tokens), WIDTH), np.float32)
    embedding[:, 0] = 1
    for direction, row in enumerate([default, *table.values()]):
        output[:, direction] = NEVER
        output[list(row), direction] = list(row.values())
    for direction, token in enumerate(table, 1):
        embedding[token] = 0
        embedding[token, direction] = 1
    tensors = {"token_embd.weight": embedding, **_layer(0, lambda *shape: np.zeros(shape, np.float32))}
    tensors |= {
        "output_norm.weight": np.ones(WIDTH, np.float32),
        "output.weight": output / np.float32(np.sqrt(WIDTH)),  # the norm makes a unit vector that much longer
    }
    return Toy(tensors, tokens, kinds, _metadata(layers=1))


def _layer(index: int, matrix: Any) -> dict[str, Matrix]:
    shapes = {
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (WIDTH, WIDTH),
        "attn_v": (WIDTH, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_gate": (FORWARD, WIDTH),
        "ffn_up": (FORWARD, WIDTH),
        "ffn_down": (WIDTH, FORWARD),
    }
    norms = {f"blk.{index}.{name}.weight": np.ones(WIDTH, np.float32) for name in ("attn_norm", "ffn_norm")}
    return norms | {f"blk.{index}.{name}.weight": matrix(*shape) for name, shape in shapes.items()}


def _vocabulary(extra: Sequence[bytes]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and kinds of all tokens, in the byte alphabet that GPT-2's tokenizer spells them in."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    alphabet = {byte: chr(byte) for byte in kept} | {byte: chr(256 + at) for at, byte in enumerate(moved)}
    names = [alphabet[byte] for byte in range(256)]
    added = ["".join(alphabet[byte] for byte in piece) for piece in extra]
    normal, control = gguf.TokenType.NORMAL, gguf.TokenType.CONTROL
    return (*names, *CONTROL_TOKENS, *added), (*[normal] * 256, *[control] * 3, *[normal] * len(added))


def _metadata(*, layers: int) -> dict[str, Any]:
    return {
        "general.architecture": "llama",
        "llama.context_length": 2048,
        "llama.embedding_length": WIDTH,
        "llama.block_count": layers,
        "llama.feed_forward_length": FORWARD,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-12,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.merges": ["! !"],
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": EOS,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }


def _value_type(value: Any) -> gguf.GGUFValueType:
    kinds = {
        bool: gguf.GGUFValueType.BOOL,
        int: gguf.GGUFValueType.UINT32,
        float: gguf.GGUFValueType.FLOAT32,
        np.uint16: gguf.GGUFValueType.UINT16,
    }
    return kinds.get(type(value)) or gguf.GGUFValueType.get_type(value)
