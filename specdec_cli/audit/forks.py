"""Where two texts that should be the same part, and whether rounding explains it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from specdec_cli.audit.answers import Answer
from specdec_cli.audit.passes import evaluate
from specdec_cli.core.cached import shared
from specdec_cli.core.top_k import Logits
from specdec_cli.limits import DraftTokens

DEVIATIONS: Final = 6.0
"""Two logits whose gap is below so many times the build's rounding may change places: each of both has its own error,
and of hundreds of positions the one with the largest counts."""

Gap = Callable[[Answer, int, Logits, int], float]
"""By how much, as a logit, a token falls short of being chosen from a row, after so many tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Fork:
    """After `position` tokens of an answer with `draft_tokens` another token came than in plain decoding.

    `gap` is by how much the worse of the two falls short where every token is evaluated alone, `difference` how far
    the pass of the draft moves the two against each other, `tolerance` what of that is rounding on this build.
    """

    prompt: int
    draft_tokens: DraftTokens
    position: int
    gap: float
    difference: float
    tolerance: float

    @property
    def explained(self) -> bool:
        """Whether it is a near-tie that rounding decides."""
        return self.gap <= self.tolerance

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "prompt": self.prompt,
            "draft_tokens": self.draft_tokens,
            "position": self.position,
            "gap": self.gap,
            "difference": self.difference,
            "tolerance": self.tolerance,
            "explained": self.explained,
        }


def find_fork(plain: Answer, drafted: Answer) -> int | None:
    """After how many tokens the two part; None if they do not."""
    same = shared(plain.tokens, drafted.tokens)
    return None if same == len(plain.tokens) == len(drafted.tokens) else same


def explain(
    plain: Answer, drafted: Answer, at: int, gap: Gap, rounding: float, *, prompt: int, draft_tokens: DraftTokens
) -> Fork:
    """The fork after `at` tokens, looked into with passes of its own on the context of `drafted`; see `Fork`."""
    both = [each.tokens[at] for each in (plain, drafted) if at < len(each.tokens)]
    text = plain.tokens[:at]
    alone = evaluate(drafted.target, plain.prompt, text, (1,))[-1]
    apart = max(gap(plain, at, alone, token) for token in both)
    batched = _in_its_block(drafted, at)
    moved = abs(_lead(alone, both) - _lead(batched, both))
    return Fork(prompt, draft_tokens, at, apart, moved, max(moved, DEVIATIONS * rounding))


def _in_its_block(answer: Answer, at: int) -> Logits:
    """Logits after `at` tokens from a pass like the one that decided there; those before it as much as was kept."""
    ends = list(accumulate(emitted for _, emitted in answer.blocks))
    index = min(bisect_right(ends, at), len(ends) - 1)
    drafted, emitted = answer.blocks[index]
    sizes = [each for _, each in answer.blocks[:index]]
    text = [*answer.tokens[: ends[index] - emitted], *drafted]
    rows = evaluate(answer.target, answer.prompt, text, [*sizes, len(drafted) + 1])
    return rows[at]


def _lead(row: Logits, tokens: Sequence[int]) -> float:
    return float(row[tokens[0]]) - float(row[tokens[-1]])
