"""Counters of a run; every rate is computed from them and is None where nothing was counted."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import zip_longest

from specdec_cli.core.decode import Round
from specdec_cli.core.verify import Kind


@dataclass(slots=True)
class Counters:
    """Sums over rounds. Always tokens = accepted + corrections + bonus, and 0 ≤ accepted ≤ examined ≤ drafted.

    `drafted_at[i]` and `accepted_at[i]` count blocks whose i-th token was drafted and accepted; `by_source` holds
    drafted and accepted tokens of each drafter.
    """

    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    corrections: int = 0
    bonus: int = 0
    examined: int = 0
    overlap: float = 0.0
    drafted_at: list[int] = field(default_factory=list)
    accepted_at: list[int] = field(default_factory=list)
    by_source: dict[str, list[int]] = field(default_factory=dict)

    def add(self, round_: Round) -> None:
        """Count `round_`, which must already be cut to what was emitted."""
        self.rounds += 1
        self.drafted += round_.drafted
        self.accepted += round_.accepted
        self.corrections += round_.last is Kind.CORRECTION
        self.bonus += round_.last is Kind.BONUS
        self.examined += len(round_.overlaps)
        self.overlap += sum(round_.overlaps)
        if round_.drafted:
            share = self.by_source.setdefault(round_.source, [0, 0])
            share[0] += round_.drafted
            share[1] += round_.accepted
        _count_positions(self.drafted_at, round_.drafted)
        _count_positions(self.accepted_at, round_.accepted)
        self.accepted_at += [0] * (len(self.drafted_at) - len(self.accepted_at))

    def include(self, other: Counters) -> None:
        """Count what `other` counted too."""
        for name in ("rounds", "drafted", "accepted", "corrections", "bonus", "examined", "overlap"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.drafted_at = _added(self.drafted_at, other.drafted_at)
        self.accepted_at = _added(self.accepted_at, other.accepted_at)
        for source, share in other.by_source.items():
            self.by_source[source] = _added(self.by_source.get(source, []), share)

    @property
    def tokens(self) -> int:
        """Emitted tokens."""
        return self.accepted + self.corrections + self.bonus

    @property
    def alpha(self) -> float | None:
        """accepted / examined."""
        return self.accepted / self.examined if self.examined else None

    @property
    def expected_alpha(self) -> float | None:
        """Mean of Σ min(p, q) over examined positions: α of the token rule with less variance.

        The block rule keeps more than that, the coupled one less.
        """
        return self.overlap / self.examined if self.examined else None

    @property
    def acceptance_rate(self) -> float | None:
        """accepted / drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def drafted_per_round(self) -> float | None:
        """Drafted tokens a target pass."""
        return self.drafted / self.rounds if self.rounds else None

    @property
    def tokens_per_round(self) -> float | None:
        """Emitted tokens a target pass."""
        return self.tokens / self.rounds if self.rounds else None


@dataclass(slots=True)
class Timing:
    """Seconds that an answer took, measured elsewhere. `total` is from opening the files to the last byte.

    `sample` is all of a round that is neither model: distributions, verification, text and counting.
    """

    load: float = 0.0
    prompt: float = 0.0
    draft: float = 0.0
    verify: float = 0.0
    sample: float = 0.0
    total: float = 0.0

    def include(self, other: Timing) -> None:
        """Add the seconds of `other`."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    @property
    def generation(self) -> float:
        """Seconds of all rounds."""
        return self.draft + self.verify + self.sample

    def rate(self, tokens: int) -> float | None:
        """Tokens a second of generation, neither loading nor the prompt counted."""
        return tokens / self.generation if tokens and self.generation else None


def _added(one: list[int], other: list[int]) -> list[int]:
    return [sum(pair) for pair in zip_longest(one, other, fillvalue=0)]


def _count_positions(counts: list[int], length: int) -> None:
    counts += [0] * (length - len(counts))
    for position in range(length):
        counts[position] += 1
