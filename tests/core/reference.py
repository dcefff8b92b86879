"""Slow and obvious: what the fast code of the core must agree with."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

import numpy as np

from specdec_cli.core.past import Mask
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.top_k import Logits
from tests.core.sampling.reference_penalties import do_not_repeat, in_float32, penalise
from tests.enumeration import Law, Text
from tests.toys import LogitsOf


def softmax(logits: dict[int, float]) -> Law[int]:
    best = max(logits.values())
    weights = {token: math.exp(logit - best) for token, logit in logits.items()}
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def chain_law(
    chain: SamplingChain, row: Logits, history: Sequence[int] = (), allowed: Collection[int] | None = None
) -> Law[int]:
    """The chain in its plainest form, on a row without +inf: one sampler after the other, each on a sorted dictionary.

    `history` is all that came before; `allowed`, if given, the only tokens that may come next.
    """
    logits = {token: float(logit) for token, logit in enumerate(row) if allowed is None or token in allowed}
    for token, bias in chain.logit_bias:
        if token in logits:
            logits[token] += bias
    possible = {token: logit for token, logit in logits.items() if logit > -math.inf}
    return _law(chain, chain.samplers, in_float32(possible), history)


def _law(chain: SamplingChain, samplers: Sequence[str], kept: dict[int, float], history: Sequence[int]) -> Law[int]:
    for at, name in enumerate(samplers):
        kept = dict(sorted(kept.items(), key=lambda item: (-item[1], item[0])))
        if name == "xtc":
            struck = without_top(kept, chain)
            laws = [_law(chain, samplers[at + 1 :], each, history) for each in (struck, kept)]
            shares = [chain.xtc_probability, 1 - chain.xtc_probability]
            return {token: sum(s * law.get(token, 0) for s, law in zip(shares, laws, strict=True)) for token in kept}
        kept = SAMPLERS[name](kept, chain, history)
    return softmax(kept)


def without_top(ranked: dict[int, float], chain: SamplingChain) -> dict[int, float]:
    """What XTC leaves where it strikes."""
    top = [token for token, chance in softmax(ranked).items() if chance >= chain.xtc_threshold]
    if chain.xtc_threshold > 0.5 or len(top) < 2:
        return ranked
    return {token: logit for token, logit in ranked.items() if token not in top[:-1]}


def _temperature(ranked: dict[int, float], chain: SamplingChain, _: Sequence[int]) -> dict[int, float]:
    if chain.temperature <= 1e-4:
        return dict([next(iter(ranked.items()))])
    return {token: logit / chain.temperature for token, logit in ranked.items()}


def _top_k(ranked: dict[int, float], chain: SamplingChain, _: Sequence[int]) -> dict[int, float]:
    return dict(list(ranked.items())[: chain.top_k or None])


def _top_p(ranked: dict[int, float], chain: SamplingChain, _: Sequence[int]) -> dict[int, float]:
    if chain.top_p == 1:
        return ranked
    return _until(ranked, list(ranked), lambda held: held >= chain.top_p)


def _min_p(ranked: dict[int, float], chain: SamplingChain, _: Sequence[int]) -> dict[int, float]:
    if chain.min_p == 0:
        return ranked
    floor = max(ranked.values()) + math.log(chain.min_p)
    return {token: logit for token, logit in ranked.items() if logit >= floor}


def _typical(ranked: dict[int, float], chain: SamplingChain, _: Sequence[int]) -> dict[int, float]:
    if chain.typical_p == 1:
        return ranked
    surprise = {token: -math.log(chance) if chance else math.inf for token, chance in softmax(ranked).items()}
    entropy = math.fsum(chance * surprise[token] for token, chance in softmax(ranked).items() if chance)
    by_distance = sorted(ranked, key=lambda token: (abs(surprise[token] - entropy), token))
    return _until(ranked, by_distance, lambda held: held > chain.typical_p)


def _until(ranked: dict[int, float], order: list[int], is_enough: Callable[[float], bool]) -> dict[int, float]:
    """The first of `order` up to the one with which their probability is enough."""
    law, held = softmax(ranked), 0.0
    for count, token in enumerate(order, 1):
        held += law[token]
        if is_enough(held):
            return {token: ranked[token] for token in order[:count]}
    return ranked


def _top_n_sigma(ranked: dict[int, float], chain: SamplingChain, _: Sequence[int]) -> dict[int, float]:
    if chain.top_n_sigma == 0:
        return ranked
    logits = list(ranked.values())
    mean = math.fsum(logits) / len(logits)
    deviation = math.sqrt(math.fsum((logit - mean) ** 2 for logit in logits) / len(logits))
    floor = logits[0] - chain.top_n_sigma * deviation
    return {token: logit for token, logit in ranked.items() if logit >= floor}


SAMPLERS = {
    "penalties": penalise,
    "dry": do_not_repeat,
    "top_n_sigma": _top_n_sigma,
    "top_k": _top_k,
    "typ_p": _typical,
    "top_p": _top_p,
    "min_p": _min_p,
    "temperature": _temperature,
}


def plain_law(
    logits: LogitsOf,
    chain: SamplingChain,
    prompt: Text,
    budget: int,
    ends: Collection[int] = (),
    *,
    mask: Mask | None = None,
) -> Law[Text]:
    """The law of the texts that a model says by itself: a walk over all of them, with no cache and no rounds."""
    law: defaultdict[Text, float] = defaultdict(float)

    def walk(text: Text, probability: float, mask: Mask | None) -> None:
        if len(text) == budget:
            law[text] += probability
            return
        row = logits(prompt + text)
        allowed = None if mask is None else {token for token in range(row.size) if mask.allowed(np.array([token]))[0]}
        for token, chance in chain_law(chain, row, prompt + text, allowed).items():
            if token in ends:
                law[text] += probability * chance
            else:
                walk((*text, token), probability * chance, mask and mask.after(token))

    walk((), 1.0, mask)
    return dict(law)
