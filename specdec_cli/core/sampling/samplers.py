"""Every sampler of the chain: when it is on, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from specdec_cli.core.past import Past
from specdec_cli.core.sampling import filters
from specdec_cli.core.sampling.candidates import Candidates
from specdec_cli.core.sampling.dry import dry_penalties
from specdec_cli.core.sampling.penalties import lowered, penalised

if TYPE_CHECKING:
    from specdec_cli.core.sampling.chain import SamplingChain


@dataclass(frozen=True, slots=True)
class Sampler:
    """`window` is how many tokens of the past it looks at.

    One that `shifts` changes logits, each for itself. One that `keeps_best` leaves the best token the best.
    """

    is_on: Callable[[SamplingChain], bool]
    apply: Callable[[SamplingChain, Candidates, Past], Candidates]
    window: Callable[[SamplingChain], int] = lambda _: 0
    shifts: bool = False
    keeps_best: bool = False


def _penalties_are_on(chain: SamplingChain) -> bool:
    given = (chain.repeat_penalty, chain.presence_penalty, chain.frequency_penalty)
    return chain.repeat_last_n > 0 and given != (1, 0, 0)


def _penalise(chain: SamplingChain, candidates: Candidates, past: Past) -> Candidates:
    return penalised(
        candidates,
        past.tokens[-chain.repeat_last_n :],
        repeat=chain.repeat_penalty,
        presence=chain.presence_penalty,
        frequency=chain.frequency_penalty,
    )


def _do_not_repeat(chain: SamplingChain, candidates: Candidates, past: Past) -> Candidates:
    penalties = dry_penalties(
        past.tokens[-chain.dry_penalty_last_n :],
        multiplier=chain.dry_multiplier,
        base=chain.dry_base,
        allowed=chain.dry_allowed_length,
        breakers=chain.dry_breakers,
    )
    return lowered(candidates, penalties) if penalties else candidates


SAMPLERS: Final = {
    "penalties": Sampler(_penalties_are_on, _penalise, lambda chain: chain.repeat_last_n, shifts=True),
    "dry": Sampler(
        lambda chain: chain.dry_multiplier > 0 and chain.dry_penalty_last_n > 0,
        _do_not_repeat,
        lambda chain: chain.dry_penalty_last_n,
        shifts=True,
    ),
    "top_n_sigma": Sampler(
        lambda chain: chain.top_n_sigma > 0,
        lambda chain, candidates, _: filters.top_n_sigma(candidates, chain.top_n_sigma),
        keeps_best=True,
    ),
    "top_k": Sampler(
        lambda chain: chain.top_k > 0,
        lambda chain, candidates, _: filters.top_k(candidates, chain.top_k),
        keeps_best=True,
    ),
    "typ_p": Sampler(
        lambda chain: chain.typical_p < 1,
        lambda chain, candidates, _: filters.typical(candidates, chain.typical_p),
    ),
    "top_p": Sampler(
        lambda chain: chain.top_p < 1,
        lambda chain, candidates, _: filters.top_p(candidates, chain.top_p),
        keeps_best=True,
    ),
    "min_p": Sampler(
        lambda chain: chain.min_p > 0,
        lambda chain, candidates, _: filters.min_p(candidates, chain.min_p),
        keeps_best=True,
    ),
    "xtc": Sampler(
        lambda chain: chain.xtc_probability > 0 and chain.xtc_threshold <= filters.LARGEST_XTC_THRESHOLD,
        lambda chain, candidates, _: filters.without_top(candidates, chain.xtc_threshold),
    ),
    "temperature": Sampler(
        lambda chain: chain.temperature != 1,
        lambda chain, candidates, _: filters.temperature(candidates, chain.temperature),
        shifts=True,
        keeps_best=True,
    ),
}
"""By the names of `order`. `apply` of xtc is what it does where it strikes."""
