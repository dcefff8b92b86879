"""Runs of the real engine, on contexts token by token or through a session text by text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from specdec_cli.catalog import Pair
from specdec_cli.core.decode import Round, autoregress, speculate
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.generation import Generation, Request
from specdec_cli.llama.context import Context
from specdec_cli.llama.context_options import ContextOptions
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.placement import Placement
from specdec_cli.llama.weights import Weights, load_weights
from specdec_cli.session import Session
from specdec_cli.settings import Listener, ModelSettings
from tests.wrong_samplers import RIGHT, Sampler

GREEDY: Final = SamplingChain(temperature=0)
UNFILTERED: Final = SamplingChain(temperature=1, top_k=0, top_p=1, min_p=0)


@contextmanager
def loaded(path: Path, role: str = "target") -> Iterator[Weights]:
    """The weights of `path`, freed at the end."""
    weights = load_weights(path, role, placement=Placement(), interrupt=Interrupt(), on_progress=lambda _: None)
    try:
        yield weights
    finally:
        weights.close()


@contextmanager
def opened(path: Path, *, interrupt: Interrupt | None = None, **options: Any) -> Iterator[Context]:
    """A context on `path`, by default of 512 tokens and up to 16 rows.

    In F32 throughout: F16 caches and flash attention round differently, up to 0.004 in a logit, what is
    evaluated one by one and in a batch; without them that is below 1e-5.
    """
    exact = {"cache_type_k": "f32", "cache_type_v": "f32", "flash_attention": "off"}
    defaults = {"size": 512, "batch": 512, "rows": 16, "threads": 1, **exact}
    with loaded(path) as weights:
        context = Context(weights, ContextOptions(**{**defaults, **options}), interrupt or Interrupt())
        try:
            yield context
        finally:
            context.close()


def decode(
    target: Context,
    draft: Context | None,
    prompt: Sequence[int],
    *,
    chain: SamplingChain = GREEDY,
    draft_tokens: int = 4,
    budget: int = 100,
    seed: int = 1,
    sampler: Sampler = RIGHT,
) -> list[Round]:
    """All rounds of a run over fresh caches, plain without a `draft`. Nothing ends it but the budget.

    The noise is that of the sampler's rule, so that plain decoding is what the rule is compared with.
    """
    target.rewind(0)
    noise = sampler.rule.noise(seed)
    if draft is None:
        return list(autoregress(target, prompt, chain=chain, noise=noise, budget=budget, is_end=lambda _: False))
    draft.rewind(0)
    drafter = sampler.propose(draft, chain, vocabulary=1 << 30, capacity=draft.size)
    drafter.prefill(prompt)
    return list(
        speculate(
            target,
            drafter,
            prompt,
            chain=chain,
            noise=noise,
            budget=budget,
            is_end=lambda _: False,
            enough=FixedLength(draft_tokens),
            rule=sampler.rule,
        )
    )


@dataclass(slots=True)
class Notices:
    """A listener's memory: what a user would have been told."""

    notices: list[str] = field(default_factory=list)
    loading: list[str] = field(default_factory=list)

    @property
    def listener(self) -> Listener:
        """What a session tells them to."""
        return Listener(lambda role, _: self.loading.append(role), self.notices.append)


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of one answer, how it came to be, and what was said about it."""

    text: str
    generation: Generation
    notices: list[str]


def answer(
    pair: Pair,
    prompt: str = "x",
    *,
    chain: SamplingChain = GREEDY,
    seed: int = 1,
    settings: ModelSettings | None = None,
    **request: Any,
) -> Answer:
    """What `pair` answers to a raw `prompt`; further arguments are the request's. Without a `draft_tokens` it is 4."""
    memory, request = Notices(), {"draft_tokens": 4, **request}
    with Session(pair, settings or ModelSettings(threads=1), memory.listener) as session:
        generation = session.generate(session.prompt_from_text(prompt), Request(chain=chain, seed=seed, **request))
        text = "".join(segment.text for segments in generation for segment in segments)
    return Answer(text, generation, memory.notices)
