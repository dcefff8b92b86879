"""What a context is asked to be like, and how llama.cpp is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from specdec_cli.llama.library import llama

PHYSICAL_BATCH: Final = 512
"""llama.cpp's own n_ubatch: tokens that are computed at once within a batch."""

CACHE_TYPES: Final = {
    "f32": 0,
    "f16": 1,
    "bf16": 30,
    "q8_0": 8,
    "q4_0": 2,
    "q4_1": 3,
    "iq4_nl": 20,
    "q5_0": 6,
    "q5_1": 7,
}
FLASH_ATTENTION: Final = {"auto": -1, "off": 0, "on": 1}


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """`size` tokens of cache; `batch` tokens a call at most; `rows` rows of logits a call at most.

    `snapshots` is how many states of a recurrent or hybrid model are kept to go back to: as many as there are
    passes for rows between two rewinds, so 0 in plain decoding, 1 for a target that speculates, and for its
    draft as many as it drafts. Other models keep none.
    """

    size: int
    batch: int
    rows: int
    threads: int
    flash_attention: str = "auto"
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    snapshots: int = 0


def to_params(options: ContextOptions, batch: int) -> Any:
    """The parameters of llama.cpp for `options`, with calls of `batch` tokens at most."""
    params = llama().llama_context_default_params()
    params.n_ctx = options.size
    params.n_batch = batch
    params.n_ubatch = min(PHYSICAL_BATCH, batch)
    params.n_threads = params.n_threads_batch = options.threads
    params.flash_attn_type = FLASH_ATTENTION[options.flash_attention]
    params.type_k = CACHE_TYPES[options.cache_type_k]
    params.type_v = CACHE_TYPES[options.cache_type_v]
    params.swa_full = True
    params.no_perf = True
    return params
