"""How many tokens a context should have room for: what the user says, or else what prompt and answer need."""

from __future__ import annotations

from typing import Final

from specdec_cli.errors import UsageError

DEFAULT: Final = 4096
ROOM_TO_ANSWER: Final = 2048
"""Without --ctx-size the context is 4096 tokens or what prompt and answer need, within what the model knows."""


def choose_size(prompt: int, max_tokens: int | None, *, given: int | None, trained: int, held: int = 0) -> int:
    """The size for a prompt of so many tokens and an answer of `max_tokens` at most.

    It is the `given` one, where 0 stands for the `trained` one. Without that it is the one that is `held`, while that
    is enough, and then at least twice that, so that a text that grows is not read anew again and again.

    Raises:
        UsageError: the prompt leaves no room for an answer.
    """
    wanted = max(DEFAULT, prompt + (max_tokens or ROOM_TO_ANSWER))
    size = min(held if wanted <= held else max(wanted, 2 * held), trained) if given is None else given or trained
    if prompt >= size:
        trained_for = f" over the trained {trained}" if given is None else ""
        raise UsageError(
            f"the prompt has {prompt} tokens and the context holds {size}, answer included",
            hint=f"shorten the prompt or raise --ctx-size{trained_for}",
        )
    return size
