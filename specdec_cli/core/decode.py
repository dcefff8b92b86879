"""The two loops: `autoregress`, one token a target pass, and `speculate`, which must say the same faster.

Both take the same target, chain, mask, noise and budget and yield `Round` records. Whenever one stops (end,
budget, closed by its caller, interrupted) the caches hold nothing but a beginning of prompt and emitted
text. `autoregress` takes nothing back and so runs on models that cannot; `speculate` leaves the target
without the last token, which no model has seen yet, and a draft that may lack a few more.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from specdec_cli.core.logprobs import TokenLogprobs
from specdec_cli.core.noise import Chance, ChanceSource
from specdec_cli.core.past import Mask, Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.scores import NO_TOKEN, Scores
from specdec_cli.core.top_k import Logits
from specdec_cli.core.verify import Kind, Proposal, Rule, TokenRule, Verdict


class Model(Protocol):
    """A language model with a cache of the tokens that it has evaluated."""

    @property
    def length(self) -> int:
        """How many tokens the cache holds."""
        ...

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens that the cache holds."""
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


Learn = Callable[[Proposal, Verdict], object]
"""Who is told of every block and what became of it, for later rounds."""


Watch = Callable[[Proposal, Scores, Chance, Verdict], object]
"""Who looks on: called once a round is decided, while the target's rows still hold."""


class Drafter(Protocol):
    """Proposes tokens together with the distributions that it drew them from. `name` is how statistics call it."""

    @property
    def name(self) -> str:
        """What kind of drafter it is; the `source` of its proposals."""
        ...

    def prefill(self, prompt: Sequence[int]) -> None:
        """Read the prompt ahead of the first round."""
        ...

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        """Draft after `context` until `enough`, drawing with `chance`; `past` is what its distributions depend on.

        `enough` is first asked about an empty proposal that already says who drafts.
        """
        ...

    def rewind(self, length: int) -> None:
        """Forget what was read beyond the first `length` tokens, if that far."""
        ...


@dataclass(frozen=True, slots=True)
class Round:
    """What one target pass decided. `tokens` are emitted: `accepted` kept drafts, then `last` unless it is None.

    `drafted` is cut together with the text: an end of generation that was drafted and kept, and what follows
    it, counts as neither kept nor rejected. A rejected one counts.
    `source` is who drafted; `overlaps` holds Σ min(p, q) of each examined position; `logprobs` is about each of
    `tokens`, if asked for. `rejected` are the drafted tokens that were not kept.
    """

    drafted: int
    accepted: int
    last: Kind | None
    tokens: tuple[int, ...]
    overlaps: tuple[float, ...]
    ended: bool = False
    source: str = ""
    logprobs: tuple[TokenLogprobs, ...] = ()
    rejected: tuple[int, ...] = ()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kind of each of `tokens`."""
        return (Kind.ACCEPTED,) * self.accepted + ((self.last,) if self.last else ())

    def cut(self, count: int) -> Round:
        """The same round with only its first `count` tokens emitted."""
        if count >= len(self.tokens):
            return self
        tokens, logprobs = self.tokens[:count], self.logprobs[:count]
        shorter = replace(self, accepted=min(self.accepted, count), last=None, tokens=tokens, logprobs=logprobs)
        inside_draft = count < self.accepted
        return replace(shorter, drafted=count, overlaps=self.overlaps[:count], rejected=()) if inside_draft else shorter


def autoregress(
    target: Model,
    prompt: Sequence[int],
    *,
    chain: SamplingChain,
    noise: ChanceSource,
    budget: int,
    is_end: Callable[[int], bool],
    mask: Mask | None = None,
    logprobs: int | None = None,
    watch: Watch | None = None,
) -> Generator[Round, None, None]:
    """Plain decoding: the reference that `speculate` is measured against and must equal in distribution.

    Emits at most `budget` tokens and stops before the first for which `is_end` holds. `mask` restricts the first
    token, and what follows it the later ones. `logprobs` is how many of the best alternatives a round reports,
    None for nothing of the kind.
    """
    context = list(prompt)
    past = Past(context, window=chain.window, mask=mask)
    for index in range(budget):
        scores = Scores(target.extend(context[target.length :], rows=1), chain, past, ())
        chance = noise.round(index, len(context))
        token = chance.emit(0, scores(0))
        if watch is not None:
            watch(Proposal(), scores, chance, Verdict(0, token, Kind.BONUS, ()))
        if token == NO_TOKEN or is_end(token):
            yield Round(0, 0, None, (), (), ended=True)
            return
        context.append(token)
        past = past.followed_by(token)
        yield Round(0, 0, Kind.BONUS, (token,), (), logprobs=scores.logprobs((token,), logprobs))


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
    learn: Learn | None = None,
    rule: Rule | None = None,
    mask: Mask | None = None,
    logprobs: int | None = None,
    watch: Watch | None = None,
) -> Generator[Round, None, None]:
    """Speculative decoding: tokens distributed exactly as those of `autoregress`, several a target pass.

    `noise` must be of the kind that `rule` needs. A block also ends at an end of generation and one short of the
    budget, so that no position is scored whose token could not be emitted.
    """
    rule = rule or TokenRule()
    context = list(prompt)
    past = Past(context, window=chain.window, mask=mask)
    index = 0
    try:
        while budget > 0:
            chance = noise.round(index, len(context))
            proposal = drafter.propose(context, past, _bounded(enough, budget - 1, is_end), chance)
            rows = target.extend([*context[target.length :], *proposal.tokens], rows=len(proposal.tokens) + 1)
            scores = Scores(rows, chain, past, proposal.tokens)
            verdict = rule.verify(proposal, scores, chance)
            if watch is not None:
                watch(proposal, scores, chance, verdict)
            if learn is not None:
                learn(proposal, verdict)
            round_ = _until_end(_record(proposal, verdict, scores, logprobs), is_end, scores)
            context += round_.tokens
            for token in round_.tokens:
                past = past.followed_by(token)
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


def _record(proposal: Proposal, verdict: Verdict, scores: Scores, logprobs: int | None) -> Round:
    tokens = (*proposal.tokens[: verdict.accepted], verdict.token)
    known = scores.logprobs(tokens, logprobs)
    return Round(
        len(proposal.tokens),
        verdict.accepted,
        verdict.kind,
        tokens,
        verdict.overlaps,
        source=proposal.source,
        logprobs=known,
        rejected=proposal.tokens[verdict.accepted :],
    )


def _until_end(round_: Round, is_end: Callable[[int], bool], scores: Scores) -> Round:
    """Cut `round_` before its first end of generation, or where nothing may follow, if it has one."""
    for position, token in enumerate(round_.tokens):
        if token == NO_TOKEN or is_end(token):
            return replace(round_.cut(position), ended=token != NO_TOKEN or scores.is_whole)
    return round_


def _rewind(target: Model, drafter: Drafter, length: int) -> None:
    target.rewind(min(target.length, length))
    drafter.rewind(length)
