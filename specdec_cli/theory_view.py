"""What speculation should bring, as a table and bars for a terminal or a pipe, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from specdec_cli.core.costs import Costs
from specdec_cli.json_line import to_line

if TYPE_CHECKING:  # what reads files needs far more than a formula does
    from specdec_cli.bench.reading import Observed

BAR: Final = 24
"""Widths of a bar that the highest speed-up fills."""
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
DRAFT: Final = "model"
SHOWN: Final = 8
"""Places whose α is told."""


@dataclass(frozen=True, slots=True)
class Row:
    """A draft length, the tokens that a round brings, the plain steps that it costs, and the one over the other.

    `measured` is the speed-up that a bench found, None if it did not try that length.
    """

    draft_tokens: int
    tokens_per_round: float
    cost: float
    speed_up: float
    measured: float | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """All draft lengths that were asked about, 0 being plain decoding, and the `best`.

    `alphas` are those of the first places of a block, and `alpha` that of all behind them. `ceiling` is what no draft
    of these can exceed, None if it has none.
    """

    alpha: float
    rows: tuple[Row, ...]
    best: int
    ceiling: float | None
    alphas: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Guess:
    """How often guesses are right: `alpha`, and where it is known better, `alphas` by place in the block.

    In the other rounds than this `share` of them there is none.
    """

    alpha: float
    alphas: tuple[float, ...] = ()
    share: float = 1.0

    def chances(self, length: int) -> list[float]:
        """That the first 1, 2, … `length` tokens of a block are kept."""
        kept, chances = 1.0, []
        for place in range(length):
            kept *= self.alphas[place] if place < len(self.alphas) else self.alpha
            chances.append(kept)
        return chances

    @property
    def ceiling(self) -> float | None:
        """Tokens of a round that drafts for ever; None if they have no end."""
        chances = self.chances(len(self.alphas))
        last = chances[-1] if chances else 1.0
        if self.alpha == 1 and last > 0:
            return None
        return 1 + self.share * (sum(chances) + (last * self.alpha / (1 - self.alpha) if last else 0.0))


@dataclass(frozen=True, slots=True)
class Setting:
    """What a prediction is about: the guesses, c, v(1), v(2), … in any unit, and the lengths that were measured."""

    guess: Guess
    step: float
    passes: tuple[float, ...]
    name: str = ""
    measured: Mapping[int, float] = field(default_factory=dict)


def predict(setting: Setting, longest: int) -> Prediction:
    """Of all draft lengths up to `longest`."""
    guess, passes = setting.guess, setting.passes
    if passes[-1] < passes[0]:  # a line that falls would end below nothing
        passes += (passes[-1],) * longest
    costs = Costs(passes, {DRAFT: (setting.step * passes[0],) * (longest + 1)})
    rows = []
    for length in range(longest + 1):
        tokens = 1 + guess.share * sum(guess.chances(length))
        cost = 1 + guess.share * (costs.verify(length + 1) + costs.draft(DRAFT, length, 1) - 1)
        rows.append(Row(length, tokens, cost, tokens / cost, setting.measured.get(length)))
    best = max(rows, key=lambda row: row.speed_up)
    return Prediction(guess.alpha, tuple(rows), best.draft_tokens, guess.ceiling, guess.alphas)


def to_setting(
    observed: Observed, *, alpha: float | None, step: float | None, passes: tuple[float, ...] | None
) -> Setting | None:
    """What was measured, with what is given in place of it, of which nothing was measured; None if costs lack."""
    as_measured = alpha is None and step is None and passes is None
    step, passes = observed.step if step is None else step, passes or observed.passes
    if step is None or passes is None:
        return None
    alphas = observed.alphas if alpha is None else ()
    guess = Guess(observed.alpha if alpha is None else alpha, alphas, observed.share)
    return Setting(guess, step, passes, observed.name, observed.speed_ups if as_measured else {})


def to_table(prediction: Prediction) -> str:
    """A line for each draft length, its speed-up drawn as a bar, and a verdict."""
    highest = max(row.speed_up for row in prediction.rows)
    compares = any(row.measured is not None for row in prediction.rows)
    more = f"  {'measured':>8}" if compares else ""
    lines = [f"{'γ':>3}  {'tokens a round':>14}  {'plain steps':>11}  {'speed-up':>8}{more}"]
    for row in prediction.rows:
        numbers = f"{row.draft_tokens:>3}  {row.tokens_per_round:>14.2f}  {row.cost:>11.2f}  {row.speed_up:>6.2f} ×"
        measured = "" if row.measured is None else f"{row.measured:.2f} ×"
        numbers += f"  {measured:>8}" if compares else ""
        lines.append(f"{numbers}  {_bar(row.speed_up / highest)}".rstrip())
    return "\n".join((*lines, "", _verdict(prediction), ""))


def to_tables(settings: Sequence[Setting], longest: int) -> str:
    """A table for each of what was measured, under its name, α, c and v."""
    return "\n".join(f"{_heading(each)}\n{to_table(predict(each, longest))}" for each in settings)


def to_json(prediction: Prediction) -> str:
    """The same as one object on one line."""
    return to_line(asdict(prediction))


def all_to_json(settings: Sequence[Setting], longest: int, path: Path) -> str:
    """What was measured in the file `path`, and what follows from it, as one object on one line."""
    predictions = [
        {
            "name": each.name,
            "c": each.step,
            "share": each.guess.share,
            "v": [one / each.passes[0] for one in each.passes],
            **asdict(predict(each, longest)),
        }
        for each in settings
    ]
    return to_line({"file": str(path), "predictions": predictions})


def _heading(setting: Setting) -> str:
    alphas = ", ".join(f"{each:.2f}" for each in setting.guess.alphas[:SHOWN])
    more = ", …" if len(setting.guess.alphas) > SHOWN else ""
    by_place = f" (by place {alphas}{more})" if alphas else ""
    share = f", a draft in {setting.guess.share:.0%} of the rounds" if setting.guess.share < 1 else ""
    return f"{setting.name}: α {setting.guess.alpha:.2f}{by_place}, c {setting.step:.2f}{share}"


def _verdict(prediction: Prediction) -> str:
    best = prediction.rows[prediction.best]
    verdict = f"best: γ = {best.draft_tokens}, {best.speed_up:.2f} × plain decoding"
    if best.draft_tokens == 0:
        verdict = "plain decoding is the fastest: no draft length pays"
    if prediction.ceiling is not None:
        is_plain = not prediction.alphas and math.isclose(prediction.ceiling * (1 - prediction.alpha), 1)
        formula = "1 / (1 − α) = " if is_plain else ""
        verdict += f"; no draft of this α can reach more than {formula}{prediction.ceiling:.2f} ×"
    return verdict


def _bar(share: float) -> str:
    whole, rest = divmod(round(share * BAR * 8), 8)
    return "█" * whole + EIGHTHS[rest].strip()
