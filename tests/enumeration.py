"""Every outcome of a random procedure with its probability, found by running it once for each path of its luck."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from typing import TypeVar

from specdec_cli.core.decode import Round
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import ChanceSource

Outcome = TypeVar("Outcome", bound=Hashable)
Text = tuple[int, ...]
Law = dict[Outcome, float]
"""Outcomes with their probabilities."""


class Paths:
    """A `ChanceSource` and its own `Chance`: it takes the first branch that was not taken before, depth first."""

    def __init__(self) -> None:
        self._script: list[int] = []
        self._branches: list[list[tuple[int, float]]] = []
        self.probability = 1.0

    def round(self, index: int, start: int) -> Paths:
        return self

    def draft(self, position: int, q: Distribution) -> int:
        return self.choose(support(q))

    def accept(self, position: int, probability: float) -> bool:
        return bool(self.choose([(1, probability), (0, 1 - probability)]))

    def emit(self, position: int, p: Distribution) -> int:
        return self.choose(support(p))

    def choose(self, options: Iterable[tuple[int, float]]) -> int:
        """One of the outcomes, each with its probability."""
        possible = [option for option in options if option[1] > 0]
        depth = len(self._branches)
        if depth == len(self._script):
            self._script.append(0)
        self._branches.append(possible)
        outcome, probability = possible[self._script[depth]]
        self.probability *= probability
        return outcome

    def advance(self) -> bool:
        """Go to the next path; false when all have been taken."""
        while self._script and self._script[-1] + 1 == len(self._branches[len(self._script) - 1]):
            self._script.pop()
        if not self._script:
            return False
        self._script[-1] += 1
        self._branches.clear()
        self.probability = 1.0
        return True


class SharedPaths:
    """A `ChanceSource` whose every place of the text has one uniform number, shared by all that is drawn there.

    Like the race of the coupled rule it draws with the same luck from q and from p, in whatever round; it is the
    inverse of the distribution function instead, of which all outcomes can be listed: each draw narrows the
    interval that the number of its place is known to lie in.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._known: dict[tuple[str, int], tuple[float, float]] = {}
        self._start = 0

    def round(self, index: int, start: int) -> SharedPaths:
        self._start = start
        return self

    def draft(self, position: int, q: Distribution) -> int:
        return self._narrow("token", position, support(q))

    def accept(self, position: int, probability: float) -> bool:
        return bool(self._narrow("accept", position, [(1, probability), (0, 1 - probability)]))

    def emit(self, position: int, p: Distribution) -> int:
        return self._narrow("token", position, support(p))

    def _narrow(self, purpose: str, position: int, options: Iterable[tuple[int, float]]) -> int:
        place = (purpose, self._start + position)
        low, high = self._known.get(place, (0.0, 1.0))
        parts, reached = {}, 0.0
        for outcome, probability in options:
            part = max(low, reached), min(high, reached + probability)
            reached += probability
            if part[1] - part[0] > 1e-15:  # less is rounding, of a number that lies on a border
                parts[outcome] = part
        whole = sum(above - below for below, above in parts.values())
        outcome = self._paths.choose((each, (above - below) / whole) for each, (below, above) in parts.items())
        self._known[place] = parts[outcome]
        return outcome


def support(p: Distribution) -> list[tuple[int, float]]:
    """The tokens of weight > 0 with their probabilities."""
    ids = range(p.weights.size) if p.ids is None else p.ids
    weights = zip(ids, p.weights, strict=True)
    return [(int(token), float(weight) / p.total) for token, weight in weights if weight > 0]


def law_of(procedure: Callable[[Paths], Outcome]) -> Law[Outcome]:
    """The exact law of what `procedure` returns, when all its luck comes from the `Paths` that it is given."""
    law: defaultdict[Outcome, float] = defaultdict(float)
    paths = Paths()
    while True:
        outcome = procedure(paths)
        law[outcome] += paths.probability
        if not paths.advance():
            return dict(law)


Loop = Callable[[Text, int, ChanceSource], Generator[Round, None, None]]
"""A decoding loop on models of its own: prompt, budget, noise -> rounds."""


Luck = Callable[[Paths], ChanceSource]
"""How a loop's luck is made of paths."""


def fresh(paths: Paths) -> ChanceSource:
    """Luck that is independent in every round."""
    return paths


def text_law(loop: Loop, prompt: Text, budget: int, luck: Luck = fresh) -> Law[Text]:
    """The exact law of the whole text, the loop running from its beginning to its end on every path."""

    def text(paths: Paths) -> Text:
        return tuple(token for round_ in loop(prompt, budget, luck(paths)) for token in round_.tokens)

    return law_of(text)


def text_law_by_rounds(loop: Loop, prompt: Text, budget: int) -> Law[Text]:
    """The same law, worked out round by round: a round depends on the text before it and on nothing else."""

    def one_round(context: Text, left: int) -> Law[tuple[Text, bool]]:
        def procedure(paths: Paths) -> tuple[Text, bool]:
            rounds = loop(context, left, paths)
            round_ = next(rounds)
            rounds.close()
            return round_.tokens, round_.ended

        return law_of(procedure)

    laws: dict[Text, Law[Text]] = {}

    def law_after(context: Text, left: int) -> Law[Text]:
        if left == 0:
            return {(): 1.0}
        if context in laws:
            return laws[context]
        law: defaultdict[Text, float] = defaultdict(float)
        for (tokens, ended), chance in one_round(context, left).items():
            rest = {(): 1.0} if ended else law_after(context + tokens, left - len(tokens))
            for text, probability in rest.items():
                law[tokens + text] += chance * probability
        laws[context] = dict(law)
        return laws[context]

    return law_after(prompt, budget)


def total_variation(first: Mapping[Outcome, float], second: Mapping[Outcome, float]) -> float:
    """Half the L1 distance of two laws; 0 when they are equal."""
    return sum(abs(first.get(outcome, 0) - second.get(outcome, 0)) for outcome in {*first, *second}) / 2
