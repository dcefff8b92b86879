"""Learning tables of n-grams: from texts, or from what a target itself answers to prompts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from specdec_cli.core.logprobs import TokenLogprobs
from specdec_cli.core.ngram_counts import Observations, count, joined, merge, observe, pruned
from specdec_cli.core.ngrams import NgramTable
from specdec_cli.errors import SpecdecError
from specdec_cli.generation import Request
from specdec_cli.session import Session

ALTERNATIVES: Final = 8
"""Tokens that the target could have said instead, each learned with its probability: with them a table of SmolLM2's
answers is as good as one of half as many answers again, Σ min(p, q) 0.254 in place of 0.242."""
LEAST: Final = 0.02
"""Their probability, or they are left out."""
CHUNK: Final = 1 << 20
"""Tokens of a text that are counted at once."""
RARE: Final = 0.5
"""n-grams of answers that count less are left out: 0.0002 of Σ min(p, q), and three quarters of the file."""


def learn_text(tokens: Sequence[int], order: int, vocabulary: int) -> NgramTable:
    """The table of a text of one token at least."""
    table: NgramTable | None = None
    for first in range(0, len(tokens), CHUNK):
        start = min(first, order - 1)
        part = count(observe(tokens[first - start : first + CHUNK], order, start=start), vocabulary)
        table = part if table is None else merge(table, part)
    assert table is not None
    return table


@dataclass(slots=True)
class Lesson:
    """What the target of `session` answers to `prompts`, learned in n-grams of up to `order` tokens.

    Iterate it for the number of answers so far. Whatever ends that, `table` holds what was answered by then.
    `left_out` are the prompts, from 1, that could not be asked, with the reasons.
    """

    session: Session
    prompts: Sequence[str]
    request: Request
    order: int
    answers: int = 0
    tokens: int = 0
    left_out: dict[int, SpecdecError] = field(default_factory=dict)
    _seen: list[Observations] = field(default_factory=list)

    def __iter__(self) -> Iterator[int]:
        for number, prompt in enumerate(self.prompts, 1):
            try:
                if not self._ask(number, prompt):
                    return
            except SpecdecError as error:
                self.left_out[number] = error
            yield self.answers

    def _ask(self, number: int, prompt: str) -> bool:
        """Learn from one answer, if it is not interrupted; whether it was not."""
        asked = self.session.prompt_from_messages([{"role": "user", "content": prompt}])
        generation = self.session.generate(asked, replace(self.request, logprobs=ALTERNATIVES, turn=number - 1))
        for _ in generation:
            pass
        if generation.finish_reason == "interrupted":
            return False
        self._seen.append(observed(asked, generation.logprobs, self.order))
        self.answers += 1
        self.tokens += len(generation.logprobs)
        return True

    def table(self) -> NgramTable | None:
        """The table of all answers so far; None if there are none."""
        if not self._seen:
            return None
        return pruned(count(joined(self._seen), self.session.target.vocabulary_size), RARE)


def observed(prompt: Sequence[int], answer: Sequence[TokenLogprobs], order: int) -> Observations:
    """What an answer says of the target: each token that it gave a chance, with that chance, behind those before it.

    The end of `prompt` is context. The token that was drawn is only one of them, counted by its chance too.
    """
    start = prompt[len(prompt) - min(len(prompt), order - 1) :]
    drawn = observe([*start, *(each.emitted.token for each in answer)], order)
    windows, weights = [drawn.windows], [np.zeros(len(drawn.weights))]
    for window, known in zip(drawn.windows[len(start) :], answer, strict=True):
        chances = {each.token: math.exp(each.chain) for each in (*known.best, known.emitted)}
        likely = {token: chance for token, chance in chances.items() if chance >= LEAST}
        others = np.repeat(window[None], len(likely), axis=0)
        others[:, -1] = list(likely)
        windows.append(others)
        weights.append(np.array(list(likely.values())))
    return Observations(np.concatenate(windows), np.concatenate(weights))


Report = Callable[[str], object]


def learn_answers(lesson: Lesson, report: Report) -> bool:
    """Hear all answers of `lesson`, telling `report` how far it is; whether Ctrl-C did not end it."""
    try:
        for answers in lesson:
            report(f"answered {answers} of {len(lesson.prompts)} prompts, {lesson.tokens:,} tokens")
    except KeyboardInterrupt:
        return False
    return lesson.answers + len(lesson.left_out) == len(lesson.prompts)
