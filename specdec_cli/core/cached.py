"""What a cache of an earlier text is good for: the tokens that a new one begins with."""

from __future__ import annotations

from collections.abc import Sequence

from specdec_cli.core.decode import Model
from specdec_cli.errors import ModelError


def keep_shared(model: Model, tokens: Sequence[int]) -> None:
    """Let the cache of `model` hold nothing but the longest beginning of `tokens` that it holds, if it can go back."""
    try:
        model.rewind(shared(model.tokens, tokens))
    except ModelError:
        model.rewind(0)


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many first tokens of both are the same."""
    differing = (place for place, (ours, theirs) in enumerate(zip(one, other, strict=False)) if ours != theirs)
    return next(differing, min(len(one), len(other)))
