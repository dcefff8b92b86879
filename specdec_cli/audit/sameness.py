"""The same text with every draft length and without a draft: what the greedy and the coupled check have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from specdec_cli.audit.answers import Answer, Answers
from specdec_cli.audit.forks import Fork, Gap, explain, find_fork
from specdec_cli.audit.outcome import Outcome
from specdec_cli.audit.passes import WORST, rounding
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.limits import DraftTokens

LENGTHS: Final[tuple[DraftTokens, ...]] = (4, 1, 8, "auto", 2)
MEASURED: Final = 10
"""Tokens of the first answer on which rounding is measured."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to choose tokens that leaves the draft no say: `name` of its check, `chain`, `rule`, and its `gap`.

    `chosen` are in words what the best two tokens differ in.
    """

    name: str
    chain: SamplingChain
    rule: str
    gap: Gap
    chosen: str


class Sameness:
    """Answers to `prompts` of so many `tokens`, drafted with each of `LENGTHS`, against plain decoding."""

    def __init__(self, answers: Answers, way: Way, prompts: Sequence[Sequence[int]], tokens: int) -> None:
        self.name = way.name
        self._answers = answers
        self._way = way
        self._prompts = prompts
        self._tokens = tokens
        self._compared = 0
        self._drafted = 0
        self._forks: list[Fork] = []

    def work(self) -> Iterator[float]:
        """See `Check.work`."""
        for index, prompt in enumerate(self._prompts):
            plain = self._ask(prompt, 0, turn=index)
            if self._answers.rounding is None:
                self._answers.rounding = rounding(plain.target, prompt, plain.tokens[:MEASURED])
            for length in LENGTHS:
                self._compare(plain, self._ask(prompt, length, turn=index), index, length)
                yield self._compared / (len(self._prompts) * len(LENGTHS))

    def outcome(self) -> Outcome | None:
        """See `Check.outcome`."""
        if not self._compared:
            return None
        sound = self._rounding <= WORST
        unexplained = [fork for fork in self._forks if not (fork.explained and sound)]
        figures: dict[str, Any] = {
            "answers": self._compared,
            "tokens": self._tokens,
            "drafted": self._drafted,
            "rounding": self._answers.rounding,
            "forks": [fork.to_json() for fork in self._forks],
        }
        return Outcome(self.name, not unexplained and sound, self._words(unexplained), figures)

    @property
    def _rounding(self) -> float:
        return self._answers.rounding or 0.0

    def _words(self, unexplained: Sequence[Fork]) -> str:
        same = self._compared - len(self._forks)
        text = f"{same} of {self._compared} answers with a draft equal plain decoding ({self._drafted} tokens drafted)"
        if self._rounding > WORST:
            text += f"; passes over several tokens move logits by {self._rounding:.3g}, which is no rounding"
        forks, how = (unexplained, "without a reason") if unexplained else (self._forks, "at near-ties")
        if not forks:
            return text
        widest = max(forks, key=lambda fork: fork.gap)
        return f"{text}; forks {how}: {len(forks)}, the widest {self._describe(widest)}"

    def _describe(self, fork: Fork) -> str:
        where = f"after {fork.position} tokens with {fork.draft_tokens} drafted a round"
        gap = f"between {self._way.chosen} {fork.gap:.3g} apart"
        return f"{where} {gap}, which rounding moves by up to {fork.tolerance:.3g}"

    def _ask(self, prompt: Sequence[int], length: DraftTokens, *, turn: int) -> Answer:
        way = self._way
        return self._answers.ask(
            prompt, way.chain, max_tokens=self._tokens, draft_tokens=length, rule=way.rule, turn=turn
        )

    def _compare(self, plain: Answer, drafted: Answer, prompt: int, length: DraftTokens) -> None:
        at = find_fork(plain, drafted)
        if at is not None:
            way = self._way
            fork = explain(plain, drafted, at, way.gap, self._rounding, prompt=prompt, draft_tokens=length)
            self._forks.append(fork)
        self._compared += 1
        self._drafted += sum(len(tokens) for tokens, _ in drafted.blocks)
