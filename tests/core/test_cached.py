from __future__ import annotations

import pytest

from specdec_cli.core.cached import keep_shared, shared
from specdec_cli.errors import ModelError
from tests.toys import TableModel, by_context


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ((), (), 0),
        ((1,), (), 0),
        ((1, 2), (1, 2, 3), 2),
        ((1, 2, 3), (1, 2), 2),
        ((1, 2, 3), (1, 4, 3), 1),
        ((1,), (2,), 0),
    ],
)
def test_what_two_texts_share_is_their_beginning(one: tuple[int, ...], other: tuple[int, ...], same: int) -> None:
    assert shared(one, other) == shared(other, one) == same


@pytest.mark.parametrize(("text", "left"), [((1, 2, 3, 4), 3), ((1, 2), 2), ((1, 3, 3), 1), ((2, 2, 3), 0), ((), 0)])
def test_a_cache_keeps_the_beginning_that_a_new_text_shares(text: tuple[int, ...], left: int) -> None:
    model = TableModel(by_context(1, 5))
    model.extend((1, 2, 3), rows=0)
    keep_shared(model, text)
    assert model.tokens == [1, 2, 3][:left]


def test_a_cache_that_cannot_go_back_is_emptied() -> None:
    class Stubborn(TableModel):
        def rewind(self, length: int) -> None:
            if length:
                raise ModelError("this model cannot take back evaluated tokens")
            super().rewind(length)

    model = Stubborn(by_context(1, 5))
    model.extend((1, 2, 3), rows=0)
    keep_shared(model, (1, 2, 4))
    assert model.tokens == []
