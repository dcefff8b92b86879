"""Asking a session for the answers that an audit compares, each a function of the audit's seed and its own number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from specdec_cli.core.distribution import Ids
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.step import Step
from specdec_cli.core.verify import Kind
from specdec_cli.generation import Generation, Request
from specdec_cli.limits import DEFAULT_RULE, DraftTokens
from specdec_cli.llama.context import Context
from specdec_cli.session import Session

BANNED: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class Answer:
    """`tokens` that followed `prompt`, and the blocks that they came in: what each drafted, and how much it emitted.

    `target` and `draft` are the contexts as the answer left them; there is no draft without one or in plain decoding.
    """

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    blocks: tuple[tuple[tuple[int, ...], int], ...]
    noise_seed: int
    target: Context
    draft: Context | None
    rejections: int


class Answers:
    """The answers of `session` with noise of `seed`. None of them ends by itself: what would end it is banned."""

    def __init__(self, session: Session, seed: int) -> None:
        self.session = session
        self.seed = seed
        self.rounding: float | None = None
        """How far passes over several tokens move logits, once that is measured; see `passes.rounding`."""

    @cached_property
    def greedy(self) -> SamplingChain:
        """The best token."""
        return self._chain(0.0)

    @cached_property
    def sampled(self) -> SamplingChain:
        """Temperature 1 and nothing else."""
        return self._chain(1.0)

    @cached_property
    def banned(self) -> Ids:
        """Tokens that no answer holds."""
        return np.array([token for token, bias in self.sampled.logit_bias if bias == BANNED], np.intp)

    def prompt(self, text: str) -> tuple[int, ...]:
        """Tokens of `text`."""
        return tuple(self.session.prompt_from_text(text))

    def ask(
        self,
        prompt: Sequence[int],
        chain: SamplingChain,
        *,
        max_tokens: int,
        draft_tokens: DraftTokens,
        rule: str = DEFAULT_RULE,
        turn: int = 0,
        watch: Callable[[Step], object] | None = None,
    ) -> Answer:
        """The answer number `turn`.

        Raises:
            SpecdecError: the session cannot answer.
            KeyboardInterrupt: Ctrl-C; what was said until then is lost.
        """
        request = Request(
            chain=chain, seed=self.seed, draft_tokens=draft_tokens, max_tokens=max_tokens, rule=rule, turn=turn
        )
        generation = self.session.generate(prompt, request, watch)
        for _ in generation:
            pass
        if generation.finish_reason == "interrupted":
            raise KeyboardInterrupt
        return _to_answer(generation, prompt)

    def _chain(self, temperature: float) -> SamplingChain:
        chain = self.session.chain({"samplers": ("temperature",), "temperature": temperature})
        vocabulary = range(self.session.target.vocabulary_size)
        ends = tuple((token, BANNED) for token in vocabulary if self.session.tokenizer.is_end(token))
        return replace(chain, logit_bias=(*chain.logit_bias, *ends))


def _to_answer(generation: Generation, prompt: Sequence[int]) -> Answer:
    rounds = generation.rounds
    return Answer(
        prompt=tuple(prompt),
        tokens=tuple(generation.tokens),
        blocks=tuple(((*each.tokens[: each.accepted], *each.rejected), len(each.tokens)) for each in rounds),
        noise_seed=generation.request.noise_seed,
        target=generation.target,
        draft=generation.draft,
        rejections=sum(each.last is Kind.CORRECTION for each in rounds),
    )
