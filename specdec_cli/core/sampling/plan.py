"""What a chain's options come to: the samplers that act, in order, and what can be known before any logits are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specdec_cli.core.distribution import Ids
from specdec_cli.core.sampling.filters import GREEDY_UP_TO
from specdec_cli.core.sampling.masking import Outlook
from specdec_cli.core.sampling.penalties import Values
from specdec_cli.core.sampling.samplers import SAMPLERS

if TYPE_CHECKING:
    from specdec_cli.core.sampling.chain import SamplingChain


@dataclass(frozen=True, slots=True)
class Plan:
    """Which samplers act, in order: `shifts` on the whole row, then `filters`; then XTC, if it acts, and the rest."""

    bias: tuple[Ids, Values]
    shifts: tuple[str, ...]
    filters: tuple[str, ...]
    after_xtc: tuple[str, ...] | None
    greedy: bool
    window: int
    outlook: Outlook


def to_plan(chain: SamplingChain) -> Plan:
    """The samplers of `chain` without those that change nothing."""
    names = [name for name in chain.samplers if SAMPLERS[name].is_on(chain)]
    certain = next((at for at, name in enumerate(names) if _leaves_one(chain, name)), None)
    if certain is not None:
        names = _shortened(names[: certain + 1])
    end = names.index("xtc") if "xtc" in names else len(names)
    start = next((at for at in range(end) if _leaves_one(chain, names[at]) or not SAMPLERS[names[at]].shifts), end)
    return Plan(
        bias=_to_bias(chain.logit_bias),
        shifts=tuple(names[:start]),
        filters=tuple(names[start:end]),
        after_xtc=tuple(names[end + 1 :]) if end < len(names) else None,
        greedy=certain is not None and end == len(names),
        window=max((SAMPLERS[name].window(chain) for name in names), default=0),
        outlook=_outlook(chain, names[start:]),
    )


def _leaves_one(chain: SamplingChain, name: str) -> bool:
    """Whether `name` leaves nothing but the best token, as far as options can tell."""
    if name == "temperature":
        return chain.temperature <= GREEDY_UP_TO
    return (name == "top_k" and chain.top_k == 1) or (name == "top_p" and chain.top_p == 0)


def _shortened(names: list[str]) -> list[str]:
    """The last of `names` leaves the best only: what stands right before it and keeps the best is not needed."""
    while len(names) > 1 and SAMPLERS[names[-2]].keeps_best:
        names = [*names[:-2], names[-1]]
    return names


def _outlook(chain: SamplingChain, names: Sequence[str]) -> Outlook:
    """What the filters `names`, XTC among them, tell a mask."""
    if names and _leaves_one(chain, names[0]):
        return Outlook(top_k=1)
    top_k = chain.top_k if names[:1] == ["top_k"] else None
    following = names[0 if top_k is None else 1 :]
    name = following[0] if following else None
    return Outlook(
        top_k=top_k,
        top_p=chain.top_p if name == "top_p" else None,
        min_p=chain.min_p if name == "min_p" else None,
        weighty=name in (None, "typ_p", "top_p"),
    )


def _to_bias(pairs: Sequence[tuple[int, float]]) -> tuple[Ids, Values]:
    bias: dict[int, float] = {}
    for token, value in pairs:
        bias[token] = bias.get(token, 0) + value
    return np.fromiter(bias, np.intp, len(bias)), np.fromiter(bias.values(), np.float64, len(bias))
