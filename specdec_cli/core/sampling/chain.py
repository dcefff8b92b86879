"""The sampling chain: a row of logits becomes the distribution that the next token is drawn from.

Samplers, order and defaults are those of llama.cpp (common/common.h). Both models of a pair go through one, at
every position with the tokens before it, the draft at a temperature of its own; what comes out of it *is* p
and q. So every sampler is as lossless as every other.

To add one: its name goes to `order`, its options to `SamplingChain` and `ranges`, itself to `samplers`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.past import Mask, Past
from specdec_cli.core.sampling.candidates import Candidates
from specdec_cli.core.sampling.dry import Breakers
from specdec_cli.core.sampling.masking import masked
from specdec_cli.core.sampling.mixture import mixture
from specdec_cli.core.sampling.order import DEFAULT_ORDER, check_samplers
from specdec_cli.core.sampling.penalties import biased
from specdec_cli.core.sampling.plan import Plan, to_plan
from specdec_cli.core.sampling.ranges import check_ranges
from specdec_cli.core.sampling.samplers import SAMPLERS
from specdec_cli.core.top_k import Logits
from specdec_cli.errors import ModelError, UsageError

NOTHING: Final = Past()


@dataclass(frozen=True, slots=True)
class SamplingChain:
    """The options of all samplers. Those of a sampler that `samplers` does not name do nothing.

    Temperature 0 is greedy. What switches the others off: `top_k` 0, `top_p` 1, `min_p` 0, `typical_p` 1,
    `top_n_sigma` 0, `xtc_probability` 0 or `xtc_threshold` above 0.5, `repeat_last_n` 0 or `repeat_penalty` 1
    with the other two penalties 0, `dry_multiplier` or `dry_penalty_last_n` 0.
    `dry_breakers` end a repetition. `logit_bias` is added before all samplers: -inf bans a token, several for
    one token add up, and those of tokens that a row does not have are ignored.

    Raises:
        UsageError: a value is outside its range; the message gives the range.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    top_n_sigma: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    repeat_last_n: int = 64
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = 64
    dry_breakers: Breakers = field(default_factory=dict, hash=False, repr=False)
    logit_bias: tuple[tuple[int, float], ...] = ()
    samplers: tuple[str, ...] = DEFAULT_ORDER
    _plan: Plan = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_ranges(self)
        check_samplers(self.samplers)
        object.__setattr__(self, "_plan", to_plan(self))

    @property
    def window(self) -> int:
        """How many tokens before a position its distribution depends on."""
        return self._plan.window

    @property
    def greedy(self) -> bool:
        """Whether every distribution of this chain is one token: temperature 0, top-k 1 or top-p 0 see to that."""
        return self._plan.greedy

    def distribution(self, logits: Logits, past: Past = NOTHING) -> Distribution:
        """Distribution after the chain, from float32 `logits` [vocabulary] (read, never kept or changed).

        `past` is what was said before, and the mask of what may come next: a token that it does not allow
        counts as if its logit were -inf.

        Raises:
            ModelError: the logits hold NaN, or nothing above -inf; or `past.mask` allows nothing.
            UsageError: the bias bans everything.
        """
        candidates = self._run(self._plan.shifts, self._start(logits, past.mask), past)
        if past.mask is not None:
            candidates = masked(candidates, past.mask, self._plan.outlook)
        candidates = self._run(self._plan.filters, candidates, past)
        if self._plan.after_xtc is None:
            return candidates.to_distribution()
        return self._with_xtc(candidates, self._plan.after_xtc, past)

    def _start(self, logits: Logits, mask: Mask | None) -> Candidates:
        row = Candidates(None, logits, int(logits.argmax()))
        _check(row.best)
        if self.logit_bias:
            row = row.with_logits(biased(logits, *self._plan.bias))
            if row.best == -math.inf:
                raise UsageError("--logit-bias bans every token that the model can say")
        return row if row.best < math.inf else _infinite(row, mask)

    def _run(self, names: tuple[str, ...], candidates: Candidates, past: Past) -> Candidates:
        for name in names:
            candidates = SAMPLERS[name].apply(self, candidates, past)
        return candidates

    def _with_xtc(self, candidates: Candidates, rest: tuple[str, ...], past: Past) -> Distribution:
        """XTC strikes by chance: a mixture of what the `rest` makes of both cases, so that a draw is its only luck."""
        struck = SAMPLERS["xtc"].apply(self, candidates, past)
        with_all = self._run(rest, candidates, past).to_distribution()
        if struck is candidates:
            return with_all
        return mixture(self.xtc_probability, self._run(rest, struck, past).to_distribution(), with_all)


def _check(best: float) -> None:
    if math.isnan(best) or best == -math.inf:
        raise ModelError(
            "the model answered with logits that are not numbers",
            hint="the file or this quantisation of it may be broken; on a GPU also try --gpu-layers 0",
        )


def _infinite(row: Candidates, mask: Mask | None) -> Candidates:
    """Those at +inf: they leave no chance to the others, and are all alike. Those that `mask` forbids do not count."""
    ids = np.flatnonzero(row.logits == np.inf)
    if mask is not None:
        ids = ids[mask.allowed(ids)]
    if ids.size:
        return Candidates(ids, np.zeros(ids.size, np.float32), 0)
    return row.with_logits(np.where(row.logits < np.inf, row.logits, np.float32(-np.inf)))
