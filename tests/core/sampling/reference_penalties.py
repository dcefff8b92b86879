"""The samplers that look at what was said, in their plainest form. What they change is float32 again afterwards."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from specdec_cli.core.sampling.chain import SamplingChain


def in_float32(logits: dict[int, float]) -> dict[int, float]:
    largest = float(np.finfo(np.float32).max)
    return {token: float(np.float32(min(max(logit, -largest), largest))) for token, logit in logits.items()}


def penalise(kept: dict[int, float], chain: SamplingChain, history: Sequence[int]) -> dict[int, float]:
    recent = list(history)[-chain.repeat_last_n :] if chain.repeat_last_n else []
    penalised = dict(kept)
    for token in set(recent) & kept.keys():
        logit = kept[token] * chain.repeat_penalty if kept[token] <= 0 else kept[token] / chain.repeat_penalty
        penalised[token] = logit - (recent.count(token) * chain.frequency_penalty + chain.presence_penalty)
    return in_float32(penalised)


def do_not_repeat(kept: dict[int, float], chain: SamplingChain, history: Sequence[int]) -> dict[int, float]:
    recent = list(history)[-chain.dry_penalty_last_n :] if chain.dry_penalty_last_n else []
    if chain.dry_multiplier == 0 or len(recent) <= chain.dry_allowed_length:
        return kept
    alone = {token for token, tails in chain.dry_breakers.items() if () in tails}
    penalties = {token: 0.0 if token in alone else _penalty(chain, recent, token) for token in kept}
    return in_float32({token: logit - penalties[token] for token, logit in kept.items()})


def _penalty(chain: SamplingChain, recent: list[int], token: int) -> float:
    """What DRY takes off `token`: by the longest run before an earlier one of it that is also the end of `recent`."""
    reach = since_breaker(recent, chain)
    lengths = [_common_ending(recent[:at], recent, reach) for at in range(1, len(recent)) if recent[at] == token]
    longest = max(lengths, default=-1)
    if longest < chain.dry_allowed_length or reach < chain.dry_allowed_length:
        return 0
    exponent = longest - chain.dry_allowed_length
    if chain.dry_base > 1.000001:
        exponent = min(exponent, int(88.7228391 / math.log(chain.dry_base)))
    return chain.dry_multiplier * chain.dry_base**exponent


def _common_ending(first: list[int], second: list[int], limit: int) -> int:
    """How many tokens at the end of both are the same, but no more than `limit`."""
    length = 0
    for one, other in zip(reversed(first), reversed(second), strict=False):
        if one != other or length == limit:
            break
        length += 1
    return length


def since_breaker(recent: list[int], chain: SamplingChain) -> int:
    """How many tokens follow the last breaker; of several that begin at the same place, the longest counts."""
    for at in reversed(range(len(recent))):
        rest = recent[at + 1 :]
        tails = [tail for tail in chain.dry_breakers.get(recent[at], ()) if rest[: len(tail)] == list(tail)]
        if tails:
            return len(rest) - max(len(tail) for tail in tails)
    return len(recent)
