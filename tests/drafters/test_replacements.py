"""Who renames a thing in a text that is copied is understood after the second time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Noise
from specdec_cli.core.past import Past
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.drafters.replacements import LONGEST

CHANCE = Noise(0).round(0, 0)
OLD = 99
"""The token that is to be renamed."""


def source(*uses: int) -> list[int]:
    """`uses` times a run of tokens that occurs once, with OLD in its middle; a use is told by its number."""
    return [
        token for use in uses for token in (*range(10 * use, 10 * use + 6), OLD, *range(10 * use + 6, 10 * use + 10))
    ]


def renamed(text: Sequence[int], *instead: int) -> list[int]:
    return [new for token in text for new in (instead if token == OLD else (token,))]


def blocks(prompt: list[int], answer: list[int], length: int = 6) -> list[tuple[int, ...]]:
    """What is proposed in each round until all of `answer` is said by the target."""
    drafter, text, proposals = LookupDrafter(), list(prompt), []
    drafter.prefill(text)
    while len(text) < len(prompt) + len(answer):
        drafter.rewind(len(text) - 1)
        tokens = drafter.propose(text, Past(), FixedLength(length), CHANCE).tokens
        rest = answer[len(text) - len(prompt) :]
        kept = next((at for at, pair in enumerate(zip(tokens, rest, strict=False)) if pair[0] != pair[1]), len(tokens))
        text += rest[: kept + 1]
        proposals.append(tokens)
    return proposals


def mistakes(prompt: list[int], answer: list[int]) -> int:
    """How often the old token was proposed."""
    return sum(OLD in block for block in blocks(prompt, answer))


USES = tuple(range(1, 9))


@pytest.mark.parametrize("instead", [(500,), (500, 501), tuple(range(500, 500 + LONGEST))])
def test_a_token_that_was_replaced_twice_alike_is_replaced_beforehand(instead: tuple[int, ...]) -> None:
    text = source(*USES)
    assert mistakes(text, renamed(text, *instead)) == 2
    plain = sum(len(block) > 0 for block in blocks(text, text))
    assert len(blocks(text, renamed(text, *instead))) < 2 * plain + len(USES)


def test_a_replacement_that_is_too_long_is_none() -> None:
    text = source(*USES)
    assert mistakes(text, renamed(text, *range(500, 501 + LONGEST))) == len(USES)


def test_replacements_that_differ_each_time_are_none() -> None:
    text = source(*USES)
    answer = [token if token != OLD else 500 + at for at, token in enumerate(text)]
    assert mistakes(text, answer) == len(USES)


def test_one_that_proves_wrong_is_forgotten() -> None:
    text = source(*USES)
    early, late = source(*USES[:4]), source(*USES[4:])
    proposals = blocks(text, [*renamed(early, 500), *late])
    assert sum(500 in block for block in proposals) <= 3
    assert OLD in proposals[-2] or OLD in proposals[-1]


def test_where_little_was_copied_nothing_is_learned() -> None:
    text = [token for use in USES for token in (1000 + use, use, OLD, 2000 + use)]
    assert mistakes(text, renamed(text, 500)) == len([block for block in blocks(text, renamed(text, 500)) if block])


def test_another_prompt_begins_without_what_was_learned() -> None:
    text = source(*USES)
    drafter = LookupDrafter()
    answered = [*text, *renamed(text, 500)]
    for length in range(len(text), len(answered)):
        drafter.propose(answered[:length], Past(), FixedLength(3), CHANCE)
    fresh = source(21, 22)
    drafter.prefill(fresh)
    context = [*fresh, *fresh[:4]]
    assert OLD in drafter.propose(context, Past(), FixedLength(5), CHANCE).tokens
