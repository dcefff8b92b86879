"""llama.cpp's own samplers on a row of logits, driven through the bindings."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Final

from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.top_k import Logits
from specdec_cli.llama.library import llama
from tests.core.reference import softmax
from tests.enumeration import Law

WEIGHTLESS: Final = -87.0
"""The logarithm of the smallest normal float32."""


def llama_law(
    chain: SamplingChain,
    row: Logits,
    history: Sequence[int] = (),
    *,
    vocab: Any = None,
    breakers: Sequence[bytes] = (),
    strikes: bool = False,
) -> Law[int]:
    """What they leave of `row` in the order of `chain`; XTC by `strikes`. DRY reads its `breakers` by `vocab`."""
    library = llama()
    entries = (library.llama_token_data * row.size)()
    for token, logit in enumerate(row.tolist()):
        entries[token] = library.llama_token_data(token, logit, 0)
    array = library.llama_token_data_array(entries, row.size, -1, False)
    for name in ("logit_bias", *chain.samplers):
        if name == "typ_p":
            _drop_weightless(array)
        sampler = _sampler(name, chain, row.size, vocab, breakers, strikes)
        for token in history:
            library.llama_sampler_accept(sampler, token)
        library.llama_sampler_apply(sampler, ctypes.byref(array))
        library.llama_sampler_free(sampler)
    left = {array.data[index].id: array.data[index].logit for index in range(array.size)}
    return {token: chance for token, chance in softmax(left).items() if chance > 0}


def _sampler(name: str, chain: SamplingChain, size: int, vocab: Any, breakers: Sequence[bytes], strikes: bool) -> Any:
    library = llama()
    if name == "logit_bias":
        biases = (library.llama_logit_bias * len(chain.logit_bias))(*chain.logit_bias)
        return library.llama_sampler_init_logit_bias(size, len(biases), biases)
    if name == "penalties":
        options = (chain.repeat_last_n, chain.repeat_penalty, chain.frequency_penalty, chain.presence_penalty)
        return library.llama_sampler_init_penalties(size, *options)
    if name == "dry":
        texts = (ctypes.c_char_p * len(breakers))(*breakers)
        numbers = (chain.dry_multiplier, chain.dry_base, chain.dry_allowed_length, chain.dry_penalty_last_n)
        return library.llama_sampler_init_dry(vocab, *numbers, texts, len(breakers))
    if name == "xtc":
        return library.llama_sampler_init_xtc(float(strikes and chain.xtc_probability > 0), chain.xtc_threshold, 0, 1)
    if name == "temperature":
        return library.llama_sampler_init_temp_ext(chain.temperature, 0, 1)
    if name in ("top_k", "top_n_sigma"):
        return getattr(library, f"llama_sampler_init_{name}")(getattr(chain, name))
    initialise, share = {
        "typ_p": (library.llama_sampler_init_typical, chain.typical_p),
        "top_p": (library.llama_sampler_init_top_p, chain.top_p),
        "min_p": (library.llama_sampler_init_min_p, chain.min_p),
    }[name]
    return initialise(share, 0)


def _drop_weightless(array: Any) -> None:
    """Leave out what has no weight: its 0 · log 0 would make the entropy, and with it all of typical-p, NaN."""
    kept = [(array.data[at].id, array.data[at].logit) for at in range(array.size)]
    best = max(logit for _, logit in kept)
    kept = [(token, logit) for token, logit in kept if logit > -math.inf and logit - best > WEIGHTLESS]
    for at, (token, logit) in enumerate(kept):
        array.data[at].id, array.data[at].logit = token, logit
    array.size = len(kept)
