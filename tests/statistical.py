"""Statistical assertions with a stated false-alarm rate: how often a right sampler would fail them.

The bound is on the L1 distance between observed frequencies and the law of n independent samples over k
cells (Weissman et al. 2003, "Inequalities for the L1 deviation of the empirical distribution", theorem 2.1):
P(L1 ≥ sqrt(2/n · ln((2^k - 2) / alarm))) ≤ alarm. It holds for every n, not only in the limit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from specdec_cli.core.decode import Round

FALSE_ALARM: Final = 1e-9

Sample = TypeVar("Sample", bound=Hashable)


def l1_bound(samples: int, cells: int, false_alarm: float = FALSE_ALARM) -> float:
    """The distance that `samples` independent ones over `cells` ≥ 2 cells exceed with probability ≤ `false_alarm`."""
    logarithm = cells * math.log(2) + math.log1p(-(2.0 ** (1 - cells))) - math.log(false_alarm)
    return math.sqrt(2 / samples * logarithm)


def l1_distance(samples: Sequence[Sample], law: Mapping[Sample, float]) -> float:
    """Σ |observed frequency - probability|, over all that was seen or could be."""
    counts = Counter(samples)
    return sum(abs(counts[cell] / len(samples) - law.get(cell, 0)) for cell in {*counts, *law})


def follows(samples: Sequence[Sample], law: Mapping[Sample, float], false_alarm: float = FALSE_ALARM) -> bool:
    """Whether independent `samples` may be from `law`; a sample that `law` cannot give decides alone."""
    possible = {cell: probability for cell, probability in law.items() if probability > 0}
    if not possible.keys() >= set(samples):
        return False
    return len(possible) < 2 or l1_distance(samples, possible) < l1_bound(len(samples), len(possible), false_alarm)


def emitted(rounds: Iterable[Round]) -> list[int]:
    """The text of a run: independent samples if neither model looks at what came before."""
    return [token for round_ in rounds for token in round_.tokens]
