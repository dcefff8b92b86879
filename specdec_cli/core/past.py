"""What a distribution may depend on besides the model's logits: the tokens before it, and a grammar.

Both grow with every token and are forgotten with it: a `Past` is never changed, so a rejected block leaves
no trace. The draft and the target walk the same tree of pasts, so that a grammar is asked once for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import Ids


class Mask(Protocol):
    """Which tokens may come next, such as a state of a grammar. It is never changed, so many may follow one."""

    @property
    def may_end(self) -> bool:
        """Whether the text may end here."""
        ...

    def allowed(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Whether each of `ids` [n] may come next."""
        ...

    def after(self, token: int) -> Mask:
        """The mask of the position after `token`. After one that is not allowed, what it says does not matter."""
        ...


class Past:
    """The last `window` tokens before a position, the latest last, and the mask of the position."""

    __slots__ = ("_following", "mask", "tokens", "window")

    def __init__(self, tokens: Sequence[int] = (), *, window: int = 0, mask: Mask | None = None) -> None:
        self.tokens = tuple(tokens[-window:]) if window else ()
        self.window = window
        self.mask = mask
        self._following: dict[int, Past] = {}

    def followed_by(self, token: int) -> Past:
        """The past of the next position; asked again it is the same object, with all that its mask has found out."""
        if not self.window and self.mask is None:
            return self
        if token not in self._following:
            mask = None if self.mask is None else self.mask.after(token)
            self._following[token] = Past((*self.tokens, token), window=self.window, mask=mask)
        return self._following[token]
