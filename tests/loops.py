"""The two loops on toy models, with as little to say as a test needs."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from typing import Final, Protocol

from specdec_cli.core.decode import Drafter, Model, Round, StopRule, autoregress, speculate
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import ChanceSource, Noise
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.verify import Rule
from specdec_cli.drafters.model import ModelDrafter
from tests.enumeration import Loop, Text
from tests.toys import LogitsOf, TableModel

GREEDY: Final = SamplingChain(temperature=0)
UNFILTERED: Final = SamplingChain(temperature=1, top_k=0, top_p=1, min_p=0)
IN_FLOAT64: Final = SamplingChain(temperature=1, top_k=0, top_p=1, min_p=1e-30)
"""Keeps every token of a toy, and like every filter works in float64 from there on."""


class Propose(Protocol):
    """How a draft model proposes: `ModelDrafter`, or a wrong one in its place."""

    def __call__(self, model: Model, chain: SamplingChain, *, vocabulary: int, capacity: int) -> Drafter: ...


def drafter_of(model: TableModel, chain: SamplingChain = GREEDY, *, capacity: int = 1 << 30) -> ModelDrafter:
    """A draft model that knows every token of its own."""
    return ModelDrafter(model, chain, vocabulary=model.vocabulary, capacity=capacity)


def run(
    target: Model,
    drafter: Drafter,
    prompt: Sequence[int] = (0,),
    *,
    chain: SamplingChain = GREEDY,
    budget: int = 40,
    enough: StopRule | int = 4,
    ends: Collection[int] = (),
    noise: ChanceSource | None = None,
    rule: Rule | None = None,
) -> Generator[Round, None, None]:
    """`speculate`; `enough` may be a fixed draft length."""
    return speculate(
        target,
        drafter,
        prompt,
        chain=chain,
        noise=noise or Noise(1),
        budget=budget,
        is_end=ends.__contains__,
        enough=FixedLength(enough) if isinstance(enough, int) else enough,
        rule=rule,
    )


def plain(target: LogitsOf, chain: SamplingChain, *, ends: Collection[int] = ()) -> Loop:
    """`autoregress` on a toy."""

    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        model = TableModel(target)
        return autoregress(model, prompt, chain=chain, noise=noise, budget=budget, is_end=ends.__contains__)

    return loop


def speculative(
    target: LogitsOf,
    draft: LogitsOf,
    chain: SamplingChain,
    *,
    enough: StopRule | int,
    ends: Collection[int] = (),
    rule: Rule | None = None,
    propose: Propose = ModelDrafter,
) -> Loop:
    """`speculate` on a pair of toys."""

    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        model, small = TableModel(target), TableModel(draft)
        drafter = propose(small, chain, vocabulary=min(model.vocabulary, small.vocabulary), capacity=1 << 30)
        return run(model, drafter, prompt, chain=chain, budget=budget, enough=enough, ends=ends, noise=noise, rule=rule)

    return loop
