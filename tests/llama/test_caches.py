from __future__ import annotations

from collections.abc import Iterator

import pytest

from specdec_cli.llama.caches import Caches, Need
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.weights import Weights
from specdec_cli.settings import ModelSettings
from tests.engine import loaded
from tests.toy_kinds import kind_toy


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weights]:
    with loaded(kind_toy("mamba").write(tmp_path_factory.mktemp("caches") / "model.gguf")) as opened:
        yield opened


@pytest.fixture
def caches() -> Iterator[Caches]:
    opened = Caches(ModelSettings(threads=1), Interrupt())
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("size", "rows", "snapshots", "does"),
    [(64, 3, 1, True), (64, 1, 0, True), (64, 4, 1, False), (64, 3, 2, False), (65, 3, 1, False), (63, 3, 1, False)],
)
def test_a_context_serves_as_long_as_no_more_is_needed(
    weights: Weights, caches: Caches, size: int, rows: int, snapshots: int, does: bool
) -> None:
    (first,) = caches.open([Need(weights, 64, 3, 1)])
    first.extend([1, 2, 3], rows=0)
    (second,) = caches.open([Need(weights, size, rows, snapshots)])
    assert (second is first) is does
    assert second.length == (3 if does else 0)
    assert caches.size(weights) == size


def test_only_those_that_are_needed_are_given_and_the_others_stay(weights: Weights, caches: Caches) -> None:
    with loaded(weights.path, "draft") as draft:
        both = caches.open([Need(weights, 64, 3, 1), Need(draft, 32, 1, 2)])
        assert [context.size for context in both] == [64, 32]
        assert caches.open([Need(weights, 64, 3, 1)]) == both[:1]
        assert caches.open([Need(weights, 64, 3, 1), Need(draft, 32, 1, 2)]) == both
        caches.close()
        assert caches.size(weights) == caches.size(draft) == 0
