"""Slow and obvious: what the fast code of the core must agree with."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection

from specdec_cli.core.sampling import SamplingChain
from specdec_cli.core.top_k import Logits
from tests.enumeration import Law, Text
from tests.toys import LogitsOf


def softmax(logits: dict[int, float], temperature: float = 1.0) -> Law[int]:
    best = max(logits.values())
    weights = {token: math.exp((logit - best) / temperature) for token, logit in logits.items()}
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def chain_law(chain: SamplingChain, row: Logits) -> Law[int]:
    """The chain in its plainest form, for finite logits: sort everything, then one filter after the other."""
    ranked = sorted(range(row.size), key=lambda token: (-row[token], token))
    if chain.temperature <= 1e-4:
        return {ranked[0]: 1.0}
    kept = {token: float(row[token]) for token in (ranked[: chain.top_k] if chain.top_k else ranked)}
    if chain.top_p < 1:
        kept = _top_p(kept, chain.top_p)
    if chain.min_p > 0:
        floor = max(kept.values()) + math.log(chain.min_p)
        kept = {token: logit for token, logit in kept.items() if logit >= floor}
    return softmax(kept, chain.temperature)


def _top_p(ranked: dict[int, float], share: float) -> dict[int, float]:
    held = 0.0
    kept: dict[int, float] = {}
    for token, probability in softmax(ranked).items():
        kept[token] = ranked[token]
        held += probability
        if held >= share:
            break
    return kept


def plain_law(
    logits: LogitsOf, chain: SamplingChain, prompt: Text, budget: int, ends: Collection[int] = ()
) -> Law[Text]:
    """The law of the texts that a model says by itself: a walk over all of them, with no cache and no rounds."""
    law: defaultdict[Text, float] = defaultdict(float)

    def walk(text: Text, probability: float) -> None:
        if len(text) == budget:
            law[text] += probability
            return
        for token, chance in chain_law(chain, logits(prompt + text)).items():
            if token in ends:
                law[text] += probability * chance
            else:
                walk((*text, token), probability * chance)

    walk((), 1.0)
    return dict(law)
