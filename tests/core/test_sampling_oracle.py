"""The sampling chain against llama.cpp's own samplers: the same tokens with the same probabilities."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from specdec_cli.core.sampling import SamplingChain
from specdec_cli.core.top_k import Logits
from specdec_cli.llama.library import llama
from tests.core.reference import softmax
from tests.enumeration import Law, support
from tests.loops import UNFILTERED

CHAINS = [
    SamplingChain(),
    SamplingChain(temperature=1.7, top_k=100, top_p=0.99, min_p=0.01),
    replace(UNFILTERED, top_k=5),
    replace(UNFILTERED, top_p=0.6),
    replace(UNFILTERED, top_p=0.97),
    replace(UNFILTERED, min_p=0.1),
    replace(UNFILTERED, temperature=0.3),
    replace(UNFILTERED, top_p=0.9, min_p=0.02, temperature=0.5),
    replace(UNFILTERED, top_p=0),
    replace(UNFILTERED, min_p=1),
    SamplingChain(temperature=0),
]


def llama_law(chain: SamplingChain, logits: Logits) -> Law[int]:
    """What llama.cpp's samplers, in its default order, leave of `logits`."""
    library = llama()
    entries = (library.llama_token_data * logits.size)()
    for token, logit in enumerate(logits):
        entries[token] = library.llama_token_data(token, logit, 0)
    array = library.llama_token_data_array(entries, logits.size, -1, False)
    for sampler in (
        library.llama_sampler_init_top_k(chain.top_k),
        library.llama_sampler_init_top_p(chain.top_p, 1),
        library.llama_sampler_init_min_p(chain.min_p, 1),
        library.llama_sampler_init_temp(chain.temperature),
    ):
        library.llama_sampler_apply(sampler, ctypes.byref(array))
        library.llama_sampler_free(sampler)
    left = {array.data[index].id: array.data[index].logit for index in range(array.size)}
    return {token: chance for token, chance in softmax(left).items() if chance > 0}


@pytest.mark.parametrize("chain", CHAINS, ids=str)
@pytest.mark.parametrize("size", [50, 3000])
def test_the_chain_leaves_what_llama_cpp_leaves(chain: SamplingChain, size: int) -> None:
    for seed in range(5):
        rng = np.random.default_rng([seed, size])
        logits = rng.normal(10, rng.choice([1, 4]), size).astype(np.float32)
        ours, theirs = dict(support(chain.distribution(logits))), llama_law(chain, logits)
        assert {token for token in ours if ours[token] > 1e-30} == {token for token in theirs if theirs[token] > 1e-30}
        assert ours == pytest.approx(ours | theirs, abs=1e-5)
