"""What the rounds of a trace come to: counts, from which all rates are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from specdec_cli.core.costs import Costs
from specdec_cli.core.decode import Round
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.traces.trace import Drafted, End, Header, TracedRound, TraceRecord


@dataclass(frozen=True, slots=True)
class Engine:
    """Who answered, and by which rule."""

    target: str
    draft: str | None
    rule: str


@dataclass(slots=True)
class Position:
    """The i-th tokens of all blocks: how many were drafted, how many of these examined, and of those kept.

    `overlap` is the sum of Σ min(p, q) over the examined ones.
    """

    drafted: int = 0
    examined: int = 0
    accepted: int = 0
    overlap: float = 0.0

    @property
    def alpha(self) -> float | None:
        """accepted / examined: how often a token is kept once all before it are."""
        return self.accepted / self.examined if self.examined else None

    @property
    def expected_alpha(self) -> float | None:
        """The mean of Σ min(p, q) over the examined ones."""
        return self.overlap / self.examined if self.examined else None


@dataclass(slots=True)
class Expected:
    """What --draft-tokens auto expected of its rounds, and what came: sums of tokens."""

    rounds: int = 0
    expected: float = 0.0
    emitted: int = 0


@dataclass(slots=True)
class Summary:
    """Sums over the answers of a trace. `finished` are those that reached their end.

    `lengths` counts rounds by how much they drafted, `expected` holds the rounds of each drafter, or of none, that
    the controller had expectations of. `costs` are the latest that a header names.
    """

    answers: int = 0
    finished: int = 0
    counters: Counters = field(default_factory=Counters)
    timing: Timing = field(default_factory=Timing)
    positions: list[Position] = field(default_factory=list)
    lengths: Counter[int] = field(default_factory=Counter)
    expected: dict[str, Expected] = field(default_factory=dict)
    pairs: Counter[Engine] = field(default_factory=Counter)
    costs: Costs | None = None

    def add(self, record: TraceRecord) -> None:
        """Count the next record of a trace."""
        if isinstance(record, Header):
            self.answers += 1
            self.pairs[Engine(record.target, record.draft, record.rule)] += 1
            self.costs = record.costs or self.costs
        elif isinstance(record, End):
            self.finished += 1
        else:
            self._add_round(record)

    def _add_round(self, traced: TracedRound) -> None:
        round_ = to_round(traced)
        self.counters.add(round_)
        self.lengths[round_.drafted] += 1
        self.timing.draft += traced.seconds.draft
        self.timing.verify += traced.seconds.verify
        self.timing.sample += traced.seconds.sample
        for place, drafted in enumerate(traced.drafted):
            self._add_drafted(place, drafted)
        if traced.outlook is not None:
            expected = self.expected.setdefault(traced.drafter if traced.drafted else "", Expected())
            expected.rounds += 1
            expected.expected += traced.outlook.tokens
            expected.emitted += len(traced.emitted)

    def _add_drafted(self, place: int, drafted: Drafted) -> None:
        if drafted.decision == "cut":
            return
        if place == len(self.positions):
            self.positions.append(Position())
        position = self.positions[place]
        position.drafted += 1
        if drafted.examined is not None:
            position.examined += 1
            position.accepted += drafted.decision == "accepted"
            position.overlap += drafted.examined.overlap


def summarise(records: Iterable[TraceRecord]) -> Summary:
    """The sums over `records`, as `reading.read_records` gives them."""
    summary = Summary()
    for record in records:
        summary.add(record)
    return summary


def to_round(traced: TracedRound) -> Round:
    """The round as `core.stats` counts it."""
    counted = [drafted for drafted in traced.drafted if drafted.decision != "cut"]
    accepted = sum(drafted.decision == "accepted" for drafted in counted)
    return Round(
        len(counted),
        accepted,
        traced.emitted[accepted].kind if len(traced.emitted) > accepted else None,
        tuple(each.token.id for each in traced.emitted),
        tuple(drafted.examined.overlap for drafted in counted if drafted.examined is not None),
        ended=traced.ended,
        source=traced.drafter,
    )
