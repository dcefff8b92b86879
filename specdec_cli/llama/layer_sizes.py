"""What each layer of a model weighs and keeps, by the metadata of its file alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specdec_cli.llama.description import cache_bytes, state_bytes
from specdec_cli.llama.gguf import opened_model, opened_part, tensor_sizes
from specdec_cli.llama.gguf_shape import LAYER, Shape, to_shape

INPUTS: Final = ("token_embd", "token_types", "position_embd", "per_layer_token_embd")
"""What tensors that llama.cpp always leaves on the CPU are called."""
EMBEDDINGS, OUTPUT = "token_embd.weight", "output.weight"


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """Bytes of the weights that a device holds for each of `layers`, and for the `output` behind them.

    Token embeddings stay on the CPU; a model that uses them as its output too has a copy of them there. `shapes` say
    what each layer alone keeps.
    """

    layers: tuple[int, ...]
    output: int
    shapes: tuple[Shape, ...]


def read_layer_sizes(path: Path, role: str, later_parts: Sequence[Path] = ()) -> LayerSizes:
    """The sizes of the model `path`, which `later_parts` continue.

    Raises:
        ModelError: a file cannot be opened, is not a model, or is cut short.
    """
    with opened_model(path, role) as (context, values):
        sizes = tensor_sizes(context)
        for part in later_parts:
            with opened_part(part, role) as more:
                sizes |= tensor_sizes(more)
        names = _by_layer(sizes)
        of_layers = [names[layer] for layer in range(to_shape(values, ()).layers)]
        output = [name for name in names[None] if not name.startswith(INPUTS)]
        if OUTPUT not in sizes and EMBEDDINGS in sizes:
            output.append(EMBEDDINGS)
        return LayerSizes(
            layers=tuple(sum(sizes[name] for name in each) for each in of_layers),
            output=sum(sizes[name] for name in output),
            shapes=tuple(to_shape(values, each) for each in of_layers),
        )


def layer_bytes(sizes: LayerSizes, context: int, *, keys: str, values: str, states: int) -> tuple[int, ...]:
    """Bytes of each layer with what it keeps, the output last: the cache of `context` tokens, and recurrent `states`.

    `keys` and `values` are types of `specdec_cli.llama.context_options.CACHE_TYPES`.
    """
    kept = [
        cache_bytes(shape, context, keys=keys, values=values) + state_bytes(shape, states) for shape in sizes.shapes
    ]
    return (*(weights + more for weights, more in zip(sizes.layers, kept, strict=True)), sizes.output)


def _by_layer(names: Iterable[str]) -> defaultdict[int | None, list[str]]:
    """Names of tensors by the layer that they are in; None for those outside."""
    found = defaultdict(list)
    for name in names:
        match = LAYER.match(name)
        found[int(match[1]) if match else None].append(name)
    return found
