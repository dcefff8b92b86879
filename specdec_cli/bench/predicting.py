"""The speed-up that theory promises, from how often guesses are right and what passes cost, to set beside the measured.

Source: Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding", section 3, with what a pass
over several tokens costs here in place of 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from specdec_cli.core.costs import Costs
from specdec_cli.core.decode import Round
from specdec_cli.core.theory import expected_tokens


@dataclass(frozen=True, slots=True)
class Block:
    """What a round set out with: `drafted` tokens of `source`, whose first step read `unseen` tokens of the text."""

    source: str
    drafted: int
    unseen: int


def to_blocks(rounds: Iterable[Round]) -> Iterator[Block]:
    """The blocks of one answer. After a block that was kept whole, its drafter has yet to read its own last token."""
    text = 1  # what a drafter has to read that has not drafted yet
    unseen: dict[str, int] = {}
    for each in rounds:
        yield Block(each.source, each.drafted, unseen.get(each.source, text))
        emitted = len(each.tokens)
        text += emitted
        unseen = {source: count + emitted for source, count in unseen.items()}
        if each.drafted:
            unseen[each.source] = 2 if each.accepted == each.drafted else 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """Time of a round that is neither model's, in target passes over one token: of a plain one, and of ours."""

    plain: float
    ours: float


def predict(blocks: Sequence[Block], alpha: float, costs: Costs, sampling: Sampling) -> float:
    """The speed-up over plain decoding of rounds with these `blocks`, one of them at least, if `alpha` holds in all."""
    tokens = sum(expected_tokens(alpha, each.drafted) for each in blocks)
    steps = sum(
        costs.verify(each.drafted + 1) + costs.draft(each.source, each.drafted, each.unseen) + sampling.ours
        for each in blocks
    )
    return tokens * (1 + sampling.plain) / steps


def classic(alpha: float, step: float, lengths: Sequence[int]) -> float:
    """As the papers have it, checking being free: a drafted token takes `step` plain steps.

    `lengths` are those of all rounds, or the one that every round is meant to have.
    """
    tokens = sum(expected_tokens(alpha, each) for each in lengths)
    return tokens / sum(1 + step * each for each in lengths)
