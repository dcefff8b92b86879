"""Why drafting does not pay on a machine, and what would change that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from specdec_cli.advice import ENOUGH, to_reason
from specdec_cli.core.costs import Costs
from specdec_cli.core.draft_length import LONGEST
from specdec_cli.core.stats import Counters
from specdec_cli.core.theory import find_loss, needed_alpha
from specdec_cli.tune.finding import Ratio

CHECKED: Final = 4
"""Tokens of a pass whose cost is told: a block of three."""
DEAR_PASS: Final = 1.5
"""Plain steps that such a pass takes on kernels that do not share their work between tokens."""
DEAR_DRAFT: Final = 0.15
"""Plain steps of a drafted token from which a smaller draft makes a difference."""


def explain(ratio: Ratio, counters: Counters, costs: Costs | None, source: str) -> tuple[str, tuple[str, ...]]:
    """Why `source` does not pay, in one clause, and what would change it, a sentence each."""
    return _reason(ratio, counters, costs, source), tuple(_ways_out(counters, costs, source))


def _reason(ratio: Ratio, counters: Counters, costs: Costs | None, source: str) -> str:
    alpha = _alpha(counters)
    measured = (
        f"the best setting reached {ratio.speed_up:.2f} × plain decoding ({ratio.lowest:.2f} to {ratio.highest:.2f})"
    )
    loss = None if costs is None or alpha is None else find_loss(alpha, costs, source, LONGEST)
    if loss is None or costs is None or alpha is None:
        return measured
    return f"{to_reason(loss, alpha, costs, source)}; {measured}"


def _ways_out(counters: Counters, costs: Costs | None, source: str) -> Iterator[str]:
    if costs is None:
        return
    alpha, step = _alpha(counters), costs.draft(source, 1, 1)
    if costs.verify(CHECKED) > DEAR_PASS:
        yield (
            f"another quantisation of the target, whose passes over several tokens are cheaper: here one over {CHECKED}"
            f" takes {costs.verify(CHECKED):.1f} plain steps (Q4_0, Q8_0 and F16 often take less than the K-quants)"
        )
    if step > DEAR_DRAFT:
        yield f"a smaller draft, lookup or a table: a drafted token takes {step:.2f} of a plain step"
    needed = needed_alpha(costs, source, LONGEST)
    if needed is None:
        yield "no draft of that size, however good, would make up for what a pass costs here"
    elif alpha is not None and alpha < needed:
        yield f"a better draft: {needed:.0%} of its guesses would have to be right, {alpha:.0%} are"


def _alpha(counters: Counters) -> float | None:
    return counters.expected_alpha if counters.examined >= ENOUGH else None
