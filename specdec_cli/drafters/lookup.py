"""Prompt lookup: what followed the last time that the context ended like this (Saxena 2023, "Prompt lookup decoding").

The longest end that occurred before wins, then the most recent occurrence, which is right more often than the most
frequent continuation: 54.6 against 53.7 % of the matched tokens of Python's own library, 33.1 against 32.5 of prose,
97.0 against 96.5 of files whose last version stands before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import Final

from specdec_cli.core.decode import StopRule
from specdec_cli.core.noise import Chance
from specdec_cli.core.past import Past
from specdec_cli.core.verify import Proposal
from specdec_cli.drafters.certain import continues, copied
from specdec_cli.drafters.replacements import Guess, Replacements
from specdec_cli.drafters.suffixes import Follower, Match, SuffixAutomaton, joined

SHORTEST: Final = 2
"""A match of fewer tokens is chance."""


class LookupDrafter:
    """Finds the longest match in amortised O(1) a token, whatever the length of the context.

    `material` are further texts to find it in, such as earlier answers, the latest last. They are never joined to
    the context or to each other, and of matches of one length the context's own wins.
    """

    name: Final = "lookup"
    exhausted: Final = False

    def __init__(self, material: Iterable[Sequence[int]] = ()) -> None:
        self._material = joined(material)
        self._sure = 0  # tokens of what was read that the next context is known to have
        self._start_over()

    def prefill(self, prompt: Sequence[int]) -> None:
        """See `Drafter.prefill`: index all of it. It may be another prompt than the last one."""
        self._sure = 0
        self._read(prompt)

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        """See `Drafter.propose`. A match that reaches the end of the context goes on into what it proposed."""
        self._read(context)
        here, there = self._text.longest(), self._elsewhere.match()
        index, match = (self._material, there) if there.length > here.length else (self._text, here)
        if match.length < SHORTEST:
            return copied(self.name, (), past, enough)
        guesses: list[Guess] = []
        proposal = copied(self.name, self._onwards(index.tokens, match, guesses), past, enough)
        self._replacements.propose(self._text.tokens, index.tokens, match.length, guesses[: len(proposal.tokens)])
        return proposal

    def rewind(self, length: int) -> None:
        """See `Drafter.rewind`. What is indexed stays, as long as the next context is like it."""
        self._sure = min(self._sure, length)

    def _read(self, context: Sequence[int]) -> None:
        if not continues(context, self._text.tokens, self._sure):
            self._start_over()
        for token in context[len(self._text.tokens) :]:
            self._text.append(token)
            self._elsewhere.read(token)
        self._replacements.read(self._text.tokens)
        self._sure = len(context)

    def _start_over(self) -> None:
        self._text = SuffixAutomaton()
        self._elsewhere = Follower(self._material)
        self._replacements = Replacements()
        self._sure = 0

    def _onwards(self, tokens: Sequence[int], match: Match, guesses: list[Guess]) -> Iterator[tuple[int, float]]:
        """What follows `match` in `tokens`, with what the text replaces in it; `guesses` takes note of all."""
        for guess in self._replacements.copy(tokens, _places(tokens, match)):
            guesses.append(guess)
            yield guess.token, confidence(match.length + len(guesses) - 1)


def confidence(length: int) -> float:
    """How often a match of `length` tokens, those before it in the block included, goes on rightly.

    (length - 1/2) / (length + 2), fitted to Python's own library: 0.37, 0.46, 0.56, 0.75, 0.81, 0.90 were right
    of 2, 3, 4, 8, 13 and 24 tokens. In prose fewer are, in edited files more.
    """
    return (length - 0.5) / (length + 2)


def _places(tokens: Sequence[int], match: Match) -> Iterator[int]:
    """Where what follows `match` is, up to a separator; beyond the last token it repeats, as the copy of it would."""
    for place in cycle(range(match.place, len(tokens))):
        if tokens[place] < 0:
            return
        yield place
