"""A round with all that decided on it, for who wants to see: p and q of every position, draws, and expectations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from specdec_cli.core.decode import Round
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.draft_length import AdaptiveLength, Outlook
from specdec_cli.core.noise import Chance, ChanceSource
from specdec_cli.core.scores import Scores
from specdec_cli.core.text import Segment
from specdec_cli.core.verify import Kind, Proposal, Verdict
from specdec_cli.core.witness import Decision, Emission, Witness, WitnessedRound


@dataclass(frozen=True, slots=True)
class RoundSeconds:
    """Seconds of one round: of the draft model, of the target, and of all else."""

    draft: float
    verify: float
    sample: float


@dataclass(frozen=True, slots=True)
class Step:
    """Round `index` of an answer, whose first token has `place` in the text, prompt included.

    `proposal` holds the drafted tokens with the distributions q that they were drawn from. `targets` holds p at each
    examined position, and where the last token was drawn if that is behind them. `decisions` are those that were
    made, by position: the token rule stops at the first "no", the block rule goes backwards to the first "yes", and
    the coupled rule makes none, since it compares draws. `emission` is where the round's last token came from.
    `outlook` is what the adaptive draft length expected. `round` and `segments` are cut to what was emitted: an end
    of generation or a stop string may lie before what was verified.
    """

    index: int
    place: int
    proposal: Proposal
    targets: tuple[Distribution, ...]
    decisions: Mapping[int, Decision]
    emission: Emission | None
    outlook: Outlook | None
    round: Round
    segments: tuple[Segment[Kind], ...]
    seconds: RoundSeconds


class Observer:
    """Tells of each round as a `Step`: a loop shows what it decided, and who runs the loop what became of it.

    `length` is what decides how far to draft, if it has expectations.
    """

    def __init__(self, tell: Callable[[Step], object], length: AdaptiveLength | None) -> None:
        self._tell = tell
        self._length = length
        self._seen: Callable[..., Step] | None = None
        self._index = 0

    def witness(self, noise: ChanceSource) -> ChanceSource:
        """`noise`, looked at."""
        return Witness(noise)

    def see(self, proposal: Proposal, scores: Scores, chance: Chance, verdict: Verdict) -> None:
        """See `core.decode.Watch`. `chance` is one of `witness`."""
        assert isinstance(chance, WitnessedRound)
        targets = tuple(scores(position) for position in range(verdict.accepted + 1))
        outlook = self._length.outlook(proposal) if self._length is not None else None
        self._seen = partial(
            Step,
            proposal=proposal,
            targets=targets,
            decisions=chance.decisions,
            emission=chance.emission,
            outlook=outlook,
        )

    def finish(self, place: int, round_: Round, segments: Sequence[Segment[Kind]], seconds: RoundSeconds) -> None:
        """Tell of the round that was seen last."""
        assert self._seen is not None
        self._tell(self._seen(index=self._index, place=place, round=round_, segments=tuple(segments), seconds=seconds))
        self._index += 1
