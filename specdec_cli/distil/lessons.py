"""Answers as a network reads them: in a compact vocabulary, and in windows that are full of several conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from specdec_cli.distil.answers import Answer

LEAST: Final = 1.0
"""How often a token must occur, or be expected to, to be known."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Ids of the target that a draft knows, ascending; all others are one row, the last."""

    known: npt.NDArray[np.int64]
    size: int

    @property
    def rows(self) -> int:
        """Those of the compact vocabulary."""
        return len(self.known) + 1

    @property
    def others(self) -> int:
        """Ids that are not known."""
        return self.size - len(self.known)

    def compact(self, ids: Array) -> npt.NDArray[np.int64]:
        """The row of each of `ids`, whatever their shape."""
        place = np.minimum(np.searchsorted(self.known, ids), len(self.known) - 1)
        return np.where(self.known[place] == ids, place, len(self.known))


def known_of(answers: Sequence[Answer], size: int) -> Vocabulary:
    """The ids that occur in `answers`, or that could have, in a vocabulary of `size`."""
    counts = np.zeros(size)
    for each in answers:  # a drawn token counts as much by its chance as by having been drawn
        np.add.at(counts, each.tokens[: each.start], 1)
        np.add.at(counts, each.likely, np.exp(each.logprobs.astype(np.float32)))
        np.add.at(counts, each.tokens[each.start :], 0.5)
    return Vocabulary(np.flatnonzero(counts >= LEAST), size)


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows of rows `tokens` [b, n]; `places` [m] in them, flattened, are followed by what the target said.

    What it could have said there are the rows `likely` [m, k], with their `logprobs` [m, k].
    """

    tokens: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    likely: npt.NDArray[np.int64]
    logprobs: npt.NDArray[np.float32]


class Course:
    """All answers one behind the other, in an order that is drawn anew each time."""

    def __init__(self, answers: Sequence[Answer], vocabulary: Vocabulary, *, window: int) -> None:
        self._answers = [
            (
                vocabulary.compact(each.tokens),
                each.start,
                vocabulary.compact(each.likely),
                each.logprobs.astype(np.float32),
            )
            for each in answers
        ]
        self._window = window

    def count(self, size: int) -> int:
        """How many batches of `size` windows there are."""
        return sum(len(each[0]) for each in self._answers) // (size * self._window)

    def batches(self, size: int, luck: np.random.Generator) -> Iterator[Batch]:
        """Batches of `size` windows; the last few answers, which fill none, are left out."""
        order = luck.permutation(len(self._answers))
        picked = [self._answers[index] for index in order]
        tokens = np.concatenate([each[0] for each in picked])
        begins = np.cumsum([0, *(len(each[0]) for each in picked)])
        places = np.concatenate(
            [begin + np.arange(each[1] - 1, len(each[0]) - 1) for begin, each in zip(begins, picked, strict=False)]
        )
        likely = np.concatenate([each[2] for each in picked])
        logprobs = np.concatenate([each[3] for each in picked])
        step = size * self._window
        for first in range(0, len(tokens) - step + 1, step):
            low, high = np.searchsorted(places, [first, first + step])
            yield Batch(
                tokens[first : first + step].reshape(size, -1),
                places[low:high] - first,
                likely[low:high],
                logprobs[low:high],
            )
