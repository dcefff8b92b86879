"""Whether two models speak the same tokens: p and q can only be compared id by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specdec_cli.errors import ModelError


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of one file in order of their ids. `bos` and `add_bos` are None where the file says nothing."""

    source: str
    model: str
    tokens: Sequence[bytes]
    bos: int | None
    add_bos: bool | None


def check_same(target: Vocabulary, draft: Vocabulary) -> None:
    """Pass if every id that both know is the same token; either may have more ids (padding) at its end.

    Raises:
        ModelError: naming both files and the first difference.
    """
    difference = first_difference(target, draft)
    if difference:
        raise ModelError(
            f"draft {draft.source} does not fit target {target.source}: {difference}",
            hint="a draft must share the target's tokenizer: take a smaller model of the same family, or -d lookup",
        )


def first_difference(target: Vocabulary, draft: Vocabulary) -> str:
    """The first difference in words, empty if there is none."""
    if target.model != draft.model:
        return f"its tokenizer is {draft.model or 'unknown'}, the target's {target.model or 'unknown'}"
    shared = min(len(target.tokens), len(draft.tokens))
    if target.tokens[:shared] != draft.tokens[:shared]:
        pairs = enumerate(zip(target.tokens, draft.tokens, strict=False))
        token, (ours, theirs) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        return f"token {token} is {_quoted(theirs)}, the target's is {_quoted(ours)}"
    if None not in (target.add_bos, draft.add_bos) and target.add_bos != draft.add_bos:
        return f"its add-bos setting is {draft.add_bos}, the target's {target.add_bos}"
    if target.add_bos and None not in (target.bos, draft.bos) and target.bos != draft.bos:
        return f"its beginning-of-text token is {draft.bos}, the target's {target.bos}"
    return ""


def _quoted(token: bytes) -> str:
    return repr(token.decode("utf-8", "replace"))
