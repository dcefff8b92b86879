from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.errors import UsageError
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
def caches(weights: Weights) -> Iterator[Caches]:
    opened = Caches(ModelSettings(threads=1), Interrupt(), [weights])
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


def test_each_model_has_its_own_threads(weights: Weights) -> None:
    caches = Caches(ModelSettings(threads=1, draft_threads=2), Interrupt(), [weights])
    with loaded(weights.path, "draft") as draft:
        both = caches.open([Need(weights, 64, 3, 1), Need(draft, 64, 1, 2)])
        assert [context.options.threads for context in both] == [1, 2]
        caches.close()


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_saved_cache_fits_the_adapters_of_its_own_model_only(weights: Weights, tmp_path: Path, role: str) -> None:
    adapter = tmp_path / "adapter.gguf"
    adapter.write_bytes(b"no more than its bytes count")
    ours, theirs = ("lora", "draft_lora") if role == "target" else ("draft_lora", "lora")

    def caches(**adapters: Any) -> Caches:
        return Caches(ModelSettings(threads=1, draft_threads=1, **adapters), Interrupt(), [model])

    with loaded(weights.path, role) as model:
        saving = caches()
        saving.open([Need(model, 64, 3, 1)])[0].extend([1, 2, 3], rows=0)
        saving.save(model, tmp_path)
        saving.close()
        caches(**{theirs: ((adapter, 1.0),)}).load(model, tmp_path)
        with pytest.raises(UsageError, match="of another model, or of other --lora"):
            caches(**{ours: ((adapter, 1.0),)}).load(model, tmp_path)


@pytest.mark.parametrize("other", [{"cache_type_k": "f32"}, {"cache_type_v": "f32"}, {"flash_attn": "off"}])
def test_a_saved_cache_fits_its_own_kind_only(weights: Weights, tmp_path: Path, other: dict[str, Any]) -> None:
    saving = Caches(ModelSettings(threads=1), Interrupt(), [weights])
    saving.open([Need(weights, 64, 3, 1)])[0].extend([1, 2, 3], rows=0)
    saving.save(weights, tmp_path)
    saving.close()
    with pytest.raises(UsageError, match="--cache-type or --flash-attn"):
        Caches(ModelSettings(threads=1, **other), Interrupt(), [weights]).load(weights, tmp_path)


def _saved(weights: Weights, folder: Path, tokens: list[int]) -> None:
    saving = Caches(ModelSettings(threads=1), Interrupt(), [weights])
    saving.open([Need(weights, 64, 3, 1)])[0].extend(tokens, rows=0)
    saving.save(weights, folder)
    saving.close()


@pytest.mark.parametrize("held", [[], [5, 6, 7, 8]])
def test_what_was_loaded_takes_the_place_of_what_is_held(
    weights: Weights, caches: Caches, tmp_path: Path, held: list[int]
) -> None:
    _saved(weights, tmp_path, [1, 2, 3])
    (context,) = caches.open([Need(weights, 64, 3, 1)])
    context.extend(held, rows=0)
    caches.load(weights, tmp_path)
    assert context.tokens == held
    assert caches.restore() == []
    assert context.tokens == [1, 2, 3]
    context.extend([4], rows=0)
    assert caches.restore() == []
    assert context.tokens == [1, 2, 3, 4]


def test_what_was_loaded_and_does_not_fit_is_told_once_and_let_go(
    weights: Weights, caches: Caches, tmp_path: Path
) -> None:
    _saved(weights, tmp_path, [1] * 40)
    caches.load(weights, tmp_path)
    (context,) = caches.open([Need(weights, 30, 3, 1)])
    assert caches.restore() == ["the saved cache of the target, 40 tokens, does not fit its 30"]
    assert (context.tokens, caches.restore()) == ([], [])


def test_what_was_loaded_for_a_context_that_is_not_opened_is_let_go(
    weights: Weights, caches: Caches, tmp_path: Path
) -> None:
    _saved(weights, tmp_path, [1, 2, 3])
    caches.load(weights, tmp_path)
    assert caches.restore() == []
    (context,) = caches.open([Need(weights, 64, 3, 1)])
    assert (caches.restore(), context.tokens) == ([], [])


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_caches_are_those_of_the_files_that_were_loaded(tmp_path: Path, change: str) -> None:
    path, folder = kind_toy("mamba").write(tmp_path / "model.gguf"), tmp_path / "caches"
    with loaded(path) as model:
        caches, content = Caches(ModelSettings(threads=1), Interrupt(), [model]), path.read_bytes()
        caches.open([Need(model, 64, 3, 1)])[0].extend([1, 2, 3], rows=0)
        path.unlink()
        if change == "replaced":
            path.write_bytes(content[:-1] + b"x")
        caches.save(model, folder)
        caches.load(model, folder)
        caches.close()
    path.write_bytes(content)
    with loaded(path) as model:
        Caches(ModelSettings(threads=1), Interrupt(), [model]).load(model, folder)


def test_a_file_that_was_gone_at_once_costs_no_more_than_the_saving(weights: Weights, tmp_path: Path) -> None:
    settings = ModelSettings(threads=1, lora=((tmp_path / "gone.gguf", 1.0),))
    caches = Caches(settings, Interrupt(), [weights])
    caches.open([Need(weights, 64, 3, 1)])[0].extend([1, 2, 3], rows=0)
    for use in (caches.save, caches.load):
        with pytest.raises(UsageError, match=r"^no cache without .*gone\.gguf: No such file or directory$"):
            use(weights, tmp_path)
    caches.close()
