"""Short continuations of one prompt, each looked at as it is drawn: what was drafted, kept and emitted, by what law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from specdec_cli.audit.answers import Answers
from specdec_cli.audit.blocks import Block
from specdec_cli.audit.evidence import Evidence
from specdec_cli.audit.laws import Law, distance, probabilities, rank, softmax
from specdec_cli.audit.passes import evaluate
from specdec_cli.core.step import Step
from specdec_cli.limits import DEFAULT_RULE

TOKENS: Final = 3
DRAFTED: Final = 2
"""A block of two is the shortest in which the block rule differs from the token rule."""
CERTAIN: Final = 1 - 1e-9
"""A token that has as much of a law tells nothing when it comes out."""


class Place:
    """A `prompt`, the exact law of the first token after it, and the `side` of the draft: where q is above p.

    `laws[n - 1]` is what a pass over n tokens says; they differ by rounding alone. `side` is None until a draft was
    seen.
    """

    def __init__(self, prompt: Sequence[int]) -> None:
        self.prompt = tuple(prompt)
        self.laws: list[Law] = []
        self.side: npt.NDArray[np.bool_] | None = None
        self._goes_on: dict[tuple[int, ...], bool] = {}

    def is_steady(self, drafted: Sequence[int]) -> bool:
        """Whether a first block of just these tokens is as long as earlier ones that began like it.

        Whether one goes on may depend on what was drafted so far, never on the luck of the next token.
        """
        ends = {tuple(drafted[:length]): length < len(drafted) for length in range(len(drafted) + 1)}
        steady = all(self._goes_on.get(beginning, goes_on) == goes_on for beginning, goes_on in ends.items())
        self._goes_on |= ends
        return steady

    def prepare(self, answers: Answers) -> None:
        """Work out the law, and the side, once."""
        if self.laws:
            return
        shown: list[Step] = []
        asked = answers.ask(self.prompt, answers.sampled, max_tokens=TOKENS, draft_tokens=DRAFTED, watch=shown.append)
        for size in range(1, DRAFTED + 2):
            row = evaluate(asked.target, self.prompt, self.prompt[-1:] * (size - 1), (size,))[0]
            self.laws.append(softmax(row, answers.banned))
        if shown[0].proposal.tokens:
            p = self.laws[0]
            self.side = probabilities(shown[0].proposal.distributions[0], p.size) > p


class Continuations:
    """What was seen of one way to draw them.

    `draws` are the numbers that decided, which must all differ; `offset` is how far a p that the engine used for a
    first token was from the exact one.
    """

    def __init__(self) -> None:
        self.evidence = {kind: Evidence() for kind in ("first", "tokens", "drafts", "kept", "last")}
        self.draws: list[float] = []
        self.drafted = 0
        self.offset = 0.0

    def draw(self, answers: Answers, place: Place, way: str, *, turn: int) -> None:
        """One more of `place`: plain for `none`, or by the rule `way`."""
        size = place.laws[0].size
        plain = way == "none"

        def look(step: Step) -> None:
            targets = [probabilities(each, size) for each in step.targets]
            self.drafted += len(step.proposal.tokens)
            if len(step.round.tokens) < len(targets):
                self.evidence["tokens"].impossible()  # it came to an end, which is banned
                return
            self._judge_tokens(step, targets, place)
            if not plain and step.index == 0 and not place.is_steady(step.proposal.tokens):
                self.evidence["drafts"].impossible()
            if way != "coupled":  # there a place keeps its noise, so that what is drafted twice is drawn once
                self._judge_block(step, targets, way)

        answers.ask(
            place.prompt,
            answers.sampled,
            max_tokens=TOKENS,
            draft_tokens=0 if plain else DRAFTED,
            rule=DEFAULT_RULE if plain else way,
            turn=turn + 1,
            watch=look,
        )

    def _judge_tokens(self, step: Step, targets: Sequence[Law], place: Place) -> None:
        laws = list(targets)
        if step.index == 0:
            laws[0] = exact = place.laws[len(step.proposal.tokens)]
            self.offset = max(self.offset, distance(exact, targets[0]))
            if place.side is not None:
                self.evidence["first"].event(bool(place.side[step.round.tokens[0]]), float(exact[place.side].sum()))
        for token, p in zip(step.round.tokens, laws, strict=True):
            _judge(self.evidence["tokens"], p, token)

    def _judge_block(self, step: Step, targets: Sequence[Law], way: str) -> None:
        laws = [probabilities(each, targets[0].size) for each in step.proposal.distributions]
        block = Block(way, step.proposal.tokens, laws, targets)
        for token, q in zip(block.tokens, block.q, strict=True):
            _judge(self.evidence["drafts"], q, token)
        for position, chance in enumerate(block.chances):
            self.evidence["kept"].event(block.kept > position, chance)
        if not block.agrees(step.decisions):
            self.evidence["kept"].impossible()
        _judge(self.evidence["last"], block.last, step.round.tokens[-1])
        if step.emission is None or not block.ends_with(probabilities(step.emission.law, targets[0].size)):
            self.evidence["last"].impossible()
        self._note_draws(step)

    def _note_draws(self, step: Step) -> None:
        made = [each.draw for each in step.decisions.values()]
        made += [step.emission.draw] if step.emission is not None else []
        self.draws += [draw for draw in made if draw is not None]


def _judge(evidence: Evidence, law: Law, token: int) -> None:
    """Hold a `token` to the law that it should have."""
    if law[token] == 0:
        evidence.impossible()
    elif law[token] < CERTAIN:
        best = int(law.argmax())
        evidence.token(rank(law, token), token == best, float(law[best]))
