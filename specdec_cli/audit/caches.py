"""After an answer with rollbacks the caches hold what its text alone would have put there, and p was right all along.

The text is evaluated once more from nothing, token by token and in passes like those of the answer. How far these two
are apart is rounding; what the answer saw may not be further from the first than a few times that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from specdec_cli.audit.answers import Answer, Answers
from specdec_cli.audit.laws import Law, distance, probabilities, softmax
from specdec_cli.audit.outcome import Outcome
from specdec_cli.audit.passes import WORST, difference, evaluate
from specdec_cli.core.step import Step
from specdec_cli.core.top_k import Logits
from specdec_cli.llama.context import Context

NAME: Final = "caches"
DRAFTED: Final = 4
RULES: Final = ("block", "token")
MARGIN: Final = 4.0
"""Times the rounding that was measured, for the one position in a hundred that has more of it."""
LEAST_LOGIT: Final = 1e-3
LEAST_LAW: Final = 1e-3
"""What counts as rounding anyway, of a logit and of a total variation."""
WORST_LAW: Final = 0.25
"""As `passes.WORST`, of a mean total variation."""


class CacheCheck:
    """Sampled answers to `prompts` of so many `tokens`, with both rules that take tokens back by chance."""

    name = NAME

    def __init__(self, answers: Answers, prompts: Sequence[Sequence[int]], tokens: int) -> None:
        self._answers = answers
        self._prompts = prompts
        self._tokens = tokens
        self._rejections = 0
        self._states: dict[str, list[tuple[float, float]]] = {"target": [], "draft": []}
        self._laws: list[tuple[float, float]] = []
        self._done = 0

    def work(self) -> Iterator[float]:
        """See `Check.work`."""
        for index, prompt in enumerate(self._prompts):
            for rule in RULES:
                self._look_at(prompt, rule, turn=index)
                self._done += 1
                yield self._done / (len(self._prompts) * len(RULES))

    def outcome(self) -> Outcome | None:
        """See `Check.outcome`. The tolerances are those of the worst rounding seen, or of the mean one of laws."""
        if not self._done:
            return None
        parts = {role: _worst(seen, LEAST_LOGIT) for role, seen in self._states.items() if seen}
        found, rounding = (float(np.mean(each)) for each in zip(*self._laws, strict=True))
        parts["laws"] = {"difference": found, "rounding": rounding, "tolerance": MARGIN * rounding + LEAST_LAW}
        worst = {name: WORST_LAW if name == "laws" else WORST for name in parts}
        wrong = [
            name
            for name, part in parts.items()
            if part["difference"] > part["tolerance"] or part["rounding"] > worst[name]
        ]
        figures: dict[str, Any] = {"answers": self._done, "rejections": self._rejections, **parts}
        return Outcome(NAME, not wrong, self._words(parts, wrong), figures)

    def _words(self, parts: dict[str, dict[str, float]], wrong: Sequence[str]) -> str:
        text = f"answers with {self._rejections} rejections evaluated again from nothing ({self._done}):"
        told = [
            f"{NAMES[name]} {part['difference']:.2g} apart (rounding {part['rounding']:.2g}, "
            f"tolerated {part['tolerance']:.2g})"
            for name, part in parts.items()
            if name in wrong or not wrong
        ]
        return f"{text} {', '.join(told)}"

    def _look_at(self, prompt: Sequence[int], rule: str, *, turn: int) -> None:
        seen: dict[int, Law] = {}
        size = self._answers.session.target.vocabulary_size

        def note(step: Step) -> None:
            for position, p in enumerate(step.targets):
                seen[step.place + position] = probabilities(p, size)

        answer = self._answers.ask(
            prompt,
            self._answers.sampled,
            max_tokens=self._tokens,
            draft_tokens=DRAFTED,
            rule=rule,
            turn=turn,
            watch=note,
        )
        self._rejections += answer.rejections
        for role, context in (("target", answer.target), ("draft", answer.draft)):
            if context is not None and 1 < context.length < context.size:
                self._states[role].append(_state(context, len(prompt)))
        self._compare_laws(answer, seen)

    def _compare_laws(self, answer: Answer, seen: dict[int, Law]) -> None:
        """Each p that the answer used beside that of the same text, token by token; and that of clean passes."""
        banned = self._answers.banned
        alone = evaluate(answer.target, answer.prompt, answer.tokens[:-1], (1,))
        batched = evaluate(answer.target, answer.prompt, answer.tokens[:-1], (DRAFTED + 1,))
        for index, (one, other) in enumerate(zip(alone, batched, strict=True)):
            exact = softmax(one, banned)
            used = seen[len(answer.prompt) + index]
            self._laws.append((distance(exact, used), distance(exact, softmax(other, banned))))


NAMES: Final = {"target": "logits of the target", "draft": "logits of the draft", "laws": "p on average"}


def _state(context: Context, prompt: int) -> tuple[float, float]:
    """How far the logits after what `context` holds are from those after the same evaluated anew; and rounding."""
    tokens = list(context.tokens)
    last = tokens[-1]
    held: Logits = context.extend([last], rows=1)[0].copy()
    start = min(prompt, len(tokens))
    alone = evaluate(context, tokens[:start], [*tokens[start:], last], (1,))[-1]
    context.rewind(0)
    together = context.extend([*tokens, last], rows=1)[0].copy()
    return difference(held, alone), difference(together, alone)


def _worst(seen: Sequence[tuple[float, float]], least: float) -> dict[str, float]:
    rounding = max(each[1] for each in seen)
    found = max(each[0] for each in seen)
    return {"difference": found, "rounding": rounding, "tolerance": MARGIN * max(rounding, least)}
