"""The two loops: `autoregress`, one token a target pass, and `speculate`, which must say the same faster.

Both take the same target, chain, noise and budget and yield `Round` records. Whenever one stops (end,
budget, closed by its caller, interrupted) the caches hold nothing but a beginning of prompt and emitted
text. `autoregress` takes nothing back and so runs on models that cannot; `speculate` leaves the target
without the last token, which no model has seen yet, and a draft that may lack a few more.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance, ChanceSource
from specdec_cli.core.sampling import SamplingChain
from specdec_cli.core.top_k import Logits
from specdec_cli.core.verify import Kind, Proposal, Rule, TokenRule, Verdict


class Model(Protocol):
    """A language model with a cache of the tokens that it has evaluated."""

    @property
    def length(self) -> int:
        """How many tokens the cache holds."""
        ...

    def extend(self, tokens: Sequence[int], rows: int) -> Sequence[Logits]:
        """Evaluate `tokens` after the cached ones; logits [vocabulary] after each of the last `rows` of them.

        A row is a view that the next call overwrites.
        """
        ...

    def rewind(self, length: int) -> None:
        """Forget all but the first `length` tokens; `length` is at most `self.length`."""
        ...


StopRule = Callable[[Proposal], bool]
"""Whether a block is long enough. It sees what is drafted so far and is asked *before* the next token is drawn,
so that no drawn token is ever dropped: dropping one for its looks would bias the text."""


class Drafter(Protocol):
    """Proposes tokens together with the distributions that it drew them from."""

    def prefill(self, prompt: Sequence[int]) -> None:
        """Read the prompt ahead of the first round."""
        ...

    def propose(self, context: Sequence[int], enough: StopRule, chance: Chance) -> Proposal:
        """Draft after `context` until `enough`, drawing with `chance`."""
        ...

    def rewind(self, length: int) -> None:
        """Forget what was read beyond the first `length` tokens, if that far."""
        ...


@dataclass(frozen=True, slots=True)
class Round:
    """What one target pass decided. `tokens` are emitted: `accepted` kept drafts, then `last` unless it is None.

    `drafted` is cut together with the text: an end of generation that was drafted and kept, and what follows
    it, counts as neither kept nor rejected. A rejected one counts.
    `overlaps` holds Σ min(p, q) of each examined position.
    """

    drafted: int
    accepted: int
    last: Kind | None
    tokens: tuple[int, ...]
    overlaps: tuple[float, ...]
    ended: bool = False

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kind of each of `tokens`."""
        return (Kind.ACCEPTED,) * self.accepted + ((self.last,) if self.last else ())

    def cut(self, count: int) -> Round:
        """The same round with only its first `count` tokens emitted."""
        if count >= len(self.tokens):
            return self
        shorter = replace(self, accepted=min(self.accepted, count), last=None, tokens=self.tokens[:count])
        inside_draft = count < self.accepted
        return replace(shorter, drafted=count, overlaps=self.overlaps[:count]) if inside_draft else shorter


def autoregress(
    target: Model,
    prompt: Sequence[int],
    *,
    chain: SamplingChain,
    noise: ChanceSource,
    budget: int,
    is_end: Callable[[int], bool],
) -> Generator[Round, None, None]:
    """Plain decoding: the reference that `speculate` is measured against and must equal in distribution.

    Emits at most `budget` tokens and stops before the first for which `is_end` holds.
    """
    context = list(prompt)
    for index in range(budget):
        row = target.extend(context[target.length :], rows=1)[0]
        token = noise.round(index).emit(chain.distribution(row))
        if is_end(token):
            yield Round(0, 0, None, (), (), ended=True)
            return
        context.append(token)
        yield Round(0, 0, Kind.BONUS, (token,), ())


def speculate(
    target: Model,
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    chain: SamplingChain,
    noise: ChanceSource,
    budget: int,
    is_end: Callable[[int], bool],
    enough: StopRule,
    rule: Rule | None = None,
) -> Generator[Round, None, None]:
    """Speculative decoding: tokens distributed exactly as those of `autoregress`, several a target pass.

    A block also ends at an end of generation and one short of the budget, so that no position is scored
    whose token could not be emitted.
    """
    rule = rule or TokenRule()
    context = list(prompt)
    index = 0
    try:
        while budget > 0:
            chance = noise.round(index)
            proposal = drafter.propose(context, _bounded(enough, budget - 1, is_end), chance)
            verdict = rule.verify(proposal, _score(target, context, proposal, chain), chance)
            round_ = _until_end(_record(proposal, verdict), is_end)
            context += round_.tokens
            budget -= len(round_.tokens)
            index += 1
            _rewind(target, drafter, len(context) - 1)
            yield round_
            if round_.ended:
                return
    finally:
        _rewind(target, drafter, len(context) - 1)


def _bounded(enough: StopRule, limit: int, is_end: Callable[[int], bool]) -> StopRule:
    def bounded(proposal: Proposal) -> bool:
        tokens = proposal.tokens
        return len(tokens) >= limit or bool(tokens and is_end(tokens[-1])) or enough(proposal)

    return bounded


def _score(
    target: Model, context: Sequence[int], proposal: Proposal, chain: SamplingChain
) -> Callable[[int], Distribution]:
    """One target pass; p after the context and the first i drafted tokens, each worked out when asked for."""
    tokens = [*context[target.length :], *proposal.tokens]
    rows = target.extend(tokens, rows=len(proposal.tokens) + 1)
    return lambda position: chain.distribution(rows[position])


def _record(proposal: Proposal, verdict: Verdict) -> Round:
    tokens = (*proposal.tokens[: verdict.accepted], verdict.token)
    return Round(len(proposal.tokens), verdict.accepted, verdict.kind, tokens, verdict.overlaps)


def _until_end(round_: Round, is_end: Callable[[int], bool]) -> Round:
    """Cut `round_` before its first end of generation, if it has one."""
    for position, token in enumerate(round_.tokens):
        if is_end(token):
            return replace(round_.cut(position), ended=True)
    return round_


def _rewind(target: Model, drafter: Drafter, length: int) -> None:
    target.rewind(min(target.length, length))
    drafter.rewind(length)
