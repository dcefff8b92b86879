"""A table of n-grams as the draft model: it knows the last few tokens only, and costs next to nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from specdec_cli.core.ngrams import NgramTable
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.top_k import Logits
from specdec_cli.drafters.model import ModelDrafter

FREE_FROM: Final = 0.02
"""Seconds of a target's plain step from which a look into the table, 0.5 ms between two passes, is next to nothing.
With SmolLM2, 6 ms a step, a look in every round made an answer a tenth slower."""


class TableDrafter(ModelDrafter):
    """Draws from what `table` says, after the sampling chain. `vocabulary` is the number of ids that the target has.

    `is_free` says whether to look before being asked for a token: see `FREE_FROM`.
    """

    name = "table"

    def __init__(self, table: NgramTable, chain: SamplingChain, *, vocabulary: int, is_free: bool = True) -> None:
        self.is_free = is_free
        shared = min(table.vocabulary, vocabulary)
        super().__init__(TableModel(table), chain, vocabulary=shared, capacity=sys.maxsize)


class TableModel:
    """`table` as a model, whose cache is the text itself."""

    def __init__(self, table: NgramTable) -> None:
        self._table = table
        self.tokens: list[int] = []

    @property
    def length(self) -> int:
        """See `Model.length`."""
        return len(self.tokens)

    def extend(self, tokens: Sequence[int], rows: int) -> Sequence[Logits]:
        """See `Model.extend`."""
        self.tokens += tokens
        ends = range(len(self.tokens) - rows + 1, len(self.tokens) + 1)
        return [self._table.logits(self.tokens[max(0, end + 1 - self._table.order) : end]) for end in ends]

    def rewind(self, length: int) -> None:
        """See `Model.rewind`."""
        del self.tokens[length:]
