"""What speculation should bring, as a table and bars for a terminal or a pipe, and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from specdec_cli.core.costs import Costs
from specdec_cli.core.theory import expected_tokens, speed_up

BAR: Final = 24
"""Widths of a bar that the highest speed-up fills."""
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
DRAFT: Final = "model"


@dataclass(frozen=True, slots=True)
class Row:
    """A draft length, the tokens that a round brings, the plain steps that it costs, and the one over the other."""

    draft_tokens: int
    tokens_per_round: float
    cost: float
    speed_up: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """All draft lengths that were asked about, 0 being plain decoding, and the `best`. `ceiling` is None for α = 1."""

    alpha: float
    rows: tuple[Row, ...]
    best: int
    ceiling: float | None


def predict(alpha: float, step: float, passes: tuple[float, ...], longest: int) -> Prediction:
    """Of a draft whose tokens are kept with chance `alpha` and take `step` plain steps each.

    `passes` are v(1), v(2), ... of the target, in any unit.
    """
    costs = Costs(passes, {DRAFT: (step * passes[0],) * (longest + 1)})
    rows = tuple(
        Row(
            length,
            expected_tokens(alpha, length),
            costs.verify(length + 1) + costs.draft(DRAFT, length, 1),
            speed_up(alpha, costs, DRAFT, length),
        )
        for length in range(longest + 1)
    )
    best = max(rows, key=lambda row: row.speed_up)
    return Prediction(alpha, rows, best.draft_tokens, None if alpha == 1 else 1 / (1 - alpha))


def to_table(prediction: Prediction) -> str:
    """A line for each draft length, its speed-up drawn as a bar, and a verdict."""
    highest = max(row.speed_up for row in prediction.rows)
    lines = [f"{'γ':>3}  {'tokens a round':>14}  {'plain steps':>11}  {'speed-up':>8}"]
    for row in prediction.rows:
        numbers = f"{row.draft_tokens:>3}  {row.tokens_per_round:>14.2f}  {row.cost:>11.2f}  {row.speed_up:>6.2f} ×"
        lines.append(f"{numbers}  {_bar(row.speed_up / highest)}".rstrip())
    best = prediction.rows[prediction.best]
    verdict = f"best: γ = {best.draft_tokens}, {best.speed_up:.2f} × plain decoding"
    if best.draft_tokens == 0:
        verdict = "plain decoding is the fastest: no draft length pays"
    if prediction.ceiling is not None:
        verdict += f"; no draft of this α can reach more than 1 / (1 − α) = {prediction.ceiling:.2f} ×"
    return "\n".join((*lines, "", verdict, ""))


def to_json(prediction: Prediction) -> str:
    """The same as one object on one line."""
    return json.dumps(asdict(prediction), allow_nan=False) + "\n"


def _bar(share: float) -> str:
    whole, rest = divmod(round(share * BAR * 8), 8)
    return "█" * whole + EIGHTHS[rest].strip()
