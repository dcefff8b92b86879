"""What a model file recommends for sampling: llama.cpp takes it wherever the user says nothing.

A file can recommend anything. What is of no use is ignored and told; it is no reason to stop.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from specdec_cli.core.sampling.ranges import RANGES
from specdec_cli.llama.gguf import read_scalars
from specdec_cli.llama.gguf_values import Scalar

PREFIX: Final = "general.sampling."
SEQUENCE: Final = PREFIX + "sequence"
MIROSTAT: Final = PREFIX + "mirostat"

FIELDS: Final = {
    PREFIX + "temp": "temperature",
    PREFIX + "top_k": "top_k",
    PREFIX + "top_p": "top_p",
    PREFIX + "min_p": "min_p",
    PREFIX + "xtc_probability": "xtc_probability",
    PREFIX + "xtc_threshold": "xtc_threshold",
    PREFIX + "penalty_last_n": "repeat_last_n",
    PREFIX + "penalty_repeat": "repeat_penalty",
}
"""How the sampling chain calls what a file recommends."""

COUNTS: Final = {"top_k": -(2**31), "repeat_last_n": -1}
"""What is counted in tokens, and the least that means something."""

MOST: Final = 2**31 - 1
DECIMALS: Final = 6
"""llama.cpp takes the values through their text, which has so many."""

Default = int | float | str


def read_sampling_defaults(path: Path, role: str) -> tuple[dict[str, Default], tuple[str, ...]]:
    """What the model file `path` recommends, by the fields of SamplingChain, and what of it is ignored, in words.

    `samplers` is the order of the chain as the file writes it; -1 for `repeat_last_n` is all of the context.

    Raises:
        ModelError: the file does not parse.
    """
    found = read_scalars(path, role, (*FIELDS, SEQUENCE, MIROSTAT))
    values: dict[str, Default] = {}
    ignored = []
    mirostat, sequence = found.pop(MIROSTAT, None), found.pop(SEQUENCE, "")
    if mirostat:
        ignored.append(f"the {role}'s {MIROSTAT} {mirostat} is ignored: specdec has no such sampler")
    if isinstance(sequence, str) and sequence.strip():
        values["samplers"] = sequence
    elif sequence != "":
        ignored.append(f"the {role}'s {SEQUENCE} is ignored: it is no text")
    for key, value in found.items():
        used = _used(FIELDS[key], value)
        if used is None:
            ignored.append(f"the {role}'s {key} {_shown(value)} is ignored: it is no {_expected(FIELDS[key])}")
        else:
            values[FIELDS[key]] = used
    return values, tuple(ignored)


def _used(name: str, value: Scalar) -> int | float | None:
    """The value for the field `name`; None if it is of no use."""
    if isinstance(value, (bool, str)) or value is None or not math.isfinite(value):
        return None
    if name in COUNTS:
        if value != int(value) or not COUNTS[name] <= value <= MOST:
            return None
        return max(int(value), 0) if name == "top_k" else int(value)  # below 0 top-k is off
    low, high, _ = RANGES[name]
    rounded = round(value, DECIMALS)
    return float(rounded) if low <= rounded <= high else None


def _shown(value: Scalar) -> str:
    if value is None:
        return "list"
    return f'"{value:.40}"' if isinstance(value, str) else str(value)


def _expected(name: str) -> str:
    if name in COUNTS:
        return "number of tokens"
    low, high, _ = RANGES[name]
    return f"number in {low:g}..{high:g}"
