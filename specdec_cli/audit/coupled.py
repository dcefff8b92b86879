"""The coupled rule's text is a function of the seed alone: any draft length and no draft give the same one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from specdec_cli.audit.answers import Answer, Answers
from specdec_cli.audit.laws import Law, softmax
from specdec_cli.audit.sameness import Sameness, Way
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Chance
from specdec_cli.core.top_k import Logits
from specdec_cli.core.verify import CoupledRule

NAME: Final = "coupled"
HOPELESS: Final = 64.0
"""A token that falls behind by more has lost for other reasons than rounding."""
PRECISION: Final = 1e-3


def coupled_check(answers: Answers, prompts: Sequence[Sequence[int]], tokens: int) -> Sameness:
    """The check; see `Sameness`."""

    def gap(answer: Answer, at: int, row: Logits, token: int) -> float:
        chance = CoupledRule().noise(answer.noise_seed).round(0, len(answer.prompt) + at)
        return behind(softmax(row, answers.banned), chance, token)

    way = Way(NAME, answers.sampled, NAME, gap, chosen="two scores of the race")
    return Sameness(answers, way, prompts, tokens)


def behind(law: Law, chance: Chance, token: int) -> float:
    """By how much `token` loses the race of `chance`: the logarithm of how much likelier it had to be to win."""
    low, high = 0.0, 0.0 if _wins(law, chance, token, 0.0) else HOPELESS
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if _wins(law, chance, token, middle) else (middle, high)
    return high


def _wins(law: Law, chance: Chance, token: int, boost: float) -> bool:
    boosted = law.copy()
    boosted[token] *= math.exp(boost)
    return chance.emit(0, Distribution.of(boosted)) == token
