"""At temperature 0 every draft length gives the text of plain decoding, but for near-ties that rounding decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from specdec_cli.audit.answers import Answer, Answers
from specdec_cli.audit.sameness import Sameness, Way
from specdec_cli.core.top_k import Logits
from specdec_cli.limits import DEFAULT_RULE

NAME: Final = "greedy"


def greedy_check(answers: Answers, prompts: Sequence[Sequence[int]], tokens: int) -> Sameness:
    """The check; see `Sameness`."""

    def gap(_answer: Answer, _at: int, row: Logits, token: int) -> float:
        allowed = np.delete(row, answers.banned)
        return float(allowed.max()) - float(row[token])

    way = Way(NAME, answers.greedy, DEFAULT_RULE, gap, chosen="two logits")
    return Sameness(answers, way, prompts, tokens)
