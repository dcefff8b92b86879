"""A strict stand-in for a language model: a table of logits with a cache that refuses every illegal move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from specdec_cli.core.decode import StopRule
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance
from specdec_cli.core.past import Past
from specdec_cli.core.top_k import Logits
from specdec_cli.core.verify import Proposal

LogitsOf = Callable[[tuple[int, ...]], Logits]
"""The logits of a model as a function of everything that it has read."""


def by_last_token(table: npt.ArrayLike) -> LogitsOf:
    """Logits that depend on the last token only: row x of `table` [vocabulary, vocabulary] follows token x."""
    rows = np.asarray(table, np.float32)
    return lambda context: rows[context[-1]]


def by_context(seed: int, vocabulary: int, spread: float = 1.5) -> LogitsOf:
    """Random logits that depend on the whole context, so that a cache that is one off shows."""

    @cache
    def logits(context: tuple[int, ...]) -> Logits:
        return np.random.default_rng([seed, *context]).normal(0, spread, vocabulary).astype(np.float32)

    return logits


def chained(*tokens: int, vocabulary: int) -> LogitsOf:
    """A model that says `tokens` in a circle: each of them makes the next one all but certain."""
    table = np.zeros((vocabulary, vocabulary))
    for token, following in zip(tokens, (*tokens[1:], tokens[0]), strict=True):
        table[token, following] = 30
    return by_last_token(table)


class TableModel:
    """A `Model` that computes nothing. Its rows are read-only views of a buffer that the next `extend` poisons."""

    def __init__(self, logits: LogitsOf, *, capacity: int = 1 << 30) -> None:
        self._logits = logits
        self.vocabulary = logits((0,)).size
        self._capacity = capacity
        self._buffer = np.empty((0, self.vocabulary), np.float32)
        self.tokens: list[int] = []
        self.evaluated = 0
        self.calls: list[tuple[int, int]] = []
        """For each `extend`, how many tokens it evaluated and how many rows it was asked for."""

    @property
    def length(self) -> int:
        return len(self.tokens)

    def extend(self, tokens: Sequence[int], rows: int) -> list[Logits]:
        assert 0 <= rows <= len(tokens), "a row is wanted of a token that is not evaluated"
        assert all(0 <= token < self.vocabulary for token in tokens), "a token that the model does not know"
        assert len(self.tokens) + len(tokens) <= self._capacity, "the cache is full"
        self.tokens += tokens
        self.evaluated += len(tokens)
        self.calls.append((len(tokens), rows))
        self._buffer.fill(np.nan)
        if rows > len(self._buffer):
            self._buffer = np.empty((rows, self.vocabulary), np.float32)
        views = []
        for index in range(rows):
            self._buffer[index] = self._logits(tuple(self.tokens[: len(self.tokens) - rows + index + 1]))
            views.append(self._buffer[index])
            views[index].flags.writeable = False
        return views

    def rewind(self, length: int) -> None:
        assert 0 <= length <= len(self.tokens), "a rewind to a place that was never reached"
        del self.tokens[length:]


class ScriptedDrafter:
    """Proposes what `script` says follows the context, each token for certain. It notes where it was rewound to."""

    name = "script"

    def __init__(self, script: Callable[[Sequence[int]], Sequence[int]]) -> None:
        self._script = script
        self.rewound_to: list[int] = []

    def prefill(self, prompt: Sequence[int]) -> None:
        del prompt

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        proposal = Proposal(source=self.name)
        for token in self._script(context):
            if enough(proposal):
                break
            q = Distribution.one_hot(token)
            proposal = proposal.followed_by(token, q)
        return proposal

    def rewind(self, length: int) -> None:
        self.rewound_to.append(length)
