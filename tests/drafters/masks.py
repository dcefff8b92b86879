"""Masks for tests of drafters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import Ids


class InTurn:
    """Allows `tokens`, each at its position only, and nothing after them."""

    def __init__(self, *tokens: int) -> None:
        self._tokens = tokens

    def allowed(self, ids: Ids) -> npt.NDArray[np.bool_]:
        return np.isin(ids, self._tokens[:1])

    @property
    def may_end(self) -> bool:
        return False

    def after(self, token: int) -> InTurn:
        assert token in self._tokens[:1], "a token was drafted that is not allowed"
        return InTurn(*self._tokens[1:])


class OneOf:
    """Allows `tokens` everywhere."""

    def __init__(self, *tokens: int) -> None:
        self._tokens = tokens

    def allowed(self, ids: Ids) -> npt.NDArray[np.bool_]:
        return np.isin(ids, self._tokens)

    @property
    def may_end(self) -> bool:
        return False

    def after(self, token: int) -> OneOf:
        return self
