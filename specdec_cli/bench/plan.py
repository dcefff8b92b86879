"""What is to be measured, and in which order: everything that is compared takes turns, so that noise hits all alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specdec_cli.bench.prompts import BenchPrompt, by_turn
from specdec_cli.limits import DraftTokens


@dataclass(frozen=True, slots=True)
class Plan:
    """Every prompt is asked `repeat` times at each temperature, plainly and with each of `draft_tokens`.

    `draft_tokens` does not hold 0. An answer has `max_tokens` tokens at most; in turn n its seed is `seed` + n.
    `rule` None is the pair's own. `time_limit` is in seconds, 0 for none. `raw` prompts are continued, not answered.
    """

    prompts: tuple[BenchPrompt, ...]
    draft_tokens: tuple[DraftTokens, ...]
    temperatures: tuple[float, ...]
    rule: str | None
    repeat: int
    max_tokens: int
    seed: int
    time_limit: float
    raw: bool

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of the prompts, in their order."""
        return tuple(dict.fromkeys(each.kind for each in self.prompts))


@dataclass(frozen=True, slots=True)
class Job:
    """One answer to be timed, in turn `turn`, from 0."""

    prompt: BenchPrompt
    turn: int
    temperature: float
    draft_tokens: DraftTokens


def jobs(plan: Plan) -> Iterator[Job]:
    """All answers in order: each plain one is followed by those that are compared with it, every other turn backwards.

    What slows the machine down little by little then counts for and against each of them.
    """
    for turn, prompts in enumerate(by_turn(plan.prompts, plan.repeat)):
        lengths = plan.draft_tokens[:: 1 if turn % 2 == 0 else -1]
        for prompt in prompts:
            for temperature in plan.temperatures:
                for length in (0, *lengths):
                    yield Job(prompt, turn, temperature, length)
