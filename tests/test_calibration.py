"""What passes cost is measured once, kept for this pair and these settings, and survives a damaged file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from specdec_cli import calibration
from specdec_cli.catalog import Pair
from specdec_cli.core.costs import Costs
from specdec_cli.core.draft_length import LONGEST
from specdec_cli.generation import Request
from specdec_cli.llama.context import Context
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from tests.engine import GREEDY, Notices, answer, loaded, opened

COSTS = Costs((0.1, 0.2), {"model": (0.05, 0.06)})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "specdec" / "costs.json"


def test_every_length_has_a_time_and_the_caches_are_left_empty(attention_pair: Pair) -> None:
    assert isinstance(attention_pair.draft, Path)
    with opened(attention_pair.target, rows=LONGEST + 1) as target, opened(attention_pair.draft, rows=1) as draft:
        costs = calibration.measure(target, {"model": draft}, 65).costs
        assert target.length == draft.length == 0
    assert len(costs.target) == len(costs.drafts["model"]) == LONGEST + 1
    assert min(*costs.target, *costs.drafts["model"]) > 0


class ClockedContext:
    """Takes n seconds for a pass over n tokens, in its own time: but for each fourth pass, which takes half, and each
    fifth, which something else on the machine draws out."""

    size = 100
    is_remote = False

    def __init__(self) -> None:
        self.length, self.now, self.passes = 0, 0.0, 0

    def extend(self, tokens: Sequence[int], rows: int) -> None:
        self.length += len(tokens)
        self.passes += bool(tokens)
        self.now += len(tokens) / 1000 * (0.5 if self.passes % 4 == 0 else 5 if self.passes % 5 == 0 else 1)

    def rewind(self, length: int) -> None:
        self.length = length


def test_costs_are_what_passes_usually_take_not_the_least_or_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    context = ClockedContext()
    monkeypatch.setattr("specdec_cli.calibration.time.perf_counter", lambda: context.now)
    costs = calibration.measure(cast(Context, context), {}, 65).costs
    assert [costs.verify(length) for length in range(1, LONGEST + 2)] == pytest.approx(list(range(1, LONGEST + 2)))


class FarContext(ClockedContext):
    """One on a worker, which asks for nine seconds at the first pass over any number of tokens."""

    is_remote = True

    def __init__(self) -> None:
        super().__init__()
        self._known: set[int] = set()

    def extend(self, tokens: Sequence[int], rows: int) -> None:
        self.length += len(tokens)
        self.now += len(tokens) / 1000 + (0 if len(tokens) in self._known else 9)
        self._known.add(len(tokens))


def test_what_a_worker_asks_once_is_no_cost_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    context = FarContext()
    monkeypatch.setattr("specdec_cli.calibration.time.perf_counter", lambda: context.now)
    costs = calibration.measure(cast(Context, context), {}, 65).costs
    assert [costs.verify(length) for length in range(1, LONGEST + 2)] == pytest.approx(list(range(1, LONGEST + 2)))


def test_a_slow_machine_measures_few_lengths_often(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(ClockedContext):
        def extend(self, tokens: Sequence[int], rows: int) -> None:
            self.length += len(tokens)
            self.now += len(tokens) / 20
            lengths[len(tokens)] += 1

    lengths: Counter[int] = Counter()
    context = Slow()
    monkeypatch.setattr("specdec_cli.calibration.time.perf_counter", lambda: context.now)
    calibration.measure(cast(Context, context), {}, 65)
    measured = {length for length in lengths if 0 < length <= LONGEST + 1}
    assert measured == {1, 2, 4, 8, LONGEST + 1}
    assert lengths[2] > 1


def test_what_a_cache_held_before_is_not_in_the_way(attention_pair: Pair) -> None:
    with opened(attention_pair.target, rows=LONGEST + 1, size=calibration.CONTEXT + LONGEST + 1) as target:
        target.extend([1] * 20, rows=0)
        assert len(calibration.measure(target, {}, 65).costs.target) == LONGEST + 1


def test_costs_are_kept_by_their_key(cache: Path) -> None:
    calibration.save("one", COSTS)
    calibration.save("two", Costs((1.0,)))
    assert calibration.load("one") == COSTS
    assert calibration.load("three") is None


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "[" * 100_000, '{"one": 3}'),
        *(f'{{"one": {{"target": [{seconds}], "drafts": {{}}}}}}' for seconds in ('"x"', "", "0", "-1", "1, NaN")),
        '{"one": {"target": [1], "drafts": {"model": []}}}',
    ],
    ids=range(11),
)
def test_a_damaged_file_is_as_good_as_none(cache: Path, content: str) -> None:
    cache.parent.mkdir()
    cache.write_text(content)
    assert calibration.load("one") is None
    calibration.save("one", COSTS)
    assert calibration.load("one") == COSTS


def test_a_folder_that_cannot_be_written_is_no_failure(cache: Path) -> None:
    cache.parent.write_text("a file in its place")
    calibration.save("one", COSTS)
    assert calibration.load("one") is None


@pytest.mark.parametrize("is_steady", [True, False])
def test_what_a_busy_machine_shows_is_used_and_not_kept_and_that_is_told(cache: Path, is_steady: bool) -> None:
    heard, measured = Notices(), calibration.Measured(COSTS, is_steady)
    announce, notice = heard.loading.append, heard.notices.append
    assert calibration.find_costs("one", lambda: measured, renew=False, announce=announce, notice=notice) == COSTS
    assert [told.startswith("the machine is busy: ") for told in heard.notices] == [True] * (not is_steady)
    assert calibration.load("one") == (COSTS if is_steady else None)


def test_a_pair_is_measured_once_and_again_when_asked(
    attention_pair: Pair, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "UNSTEADY", float("inf"))

    def measured(*, recalibrate: bool = False) -> bool:
        memory = Notices()
        with Session(attention_pair, ModelSettings(threads=1, recalibrate=recalibrate), memory.listener) as session:
            prompt = session.prompt_from_text("x")
            list(session.generate(prompt, Request(chain=GREEDY, seed=1, draft_tokens="auto", max_tokens=4)))
        return any(task.startswith("measuring") for task in memory.loading)

    assert measured()
    assert not measured()
    assert measured(recalibrate=True)


def test_a_session_tells_of_a_busy_machine_once(
    attention_pair: Pair, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "UNSTEADY", 0.0)
    heard = Notices()
    with Session(attention_pair, ModelSettings(threads=1), heard.listener) as session:
        for _ in range(2):
            list(session.generate([1], Request(chain=GREEDY, seed=1, draft_tokens="auto", max_tokens=4)))
    assert [told.startswith("the machine is busy: ") for told in heard.notices] == [True]
    assert not cache.exists()


@pytest.mark.parametrize("size", [2, 10, 20])
def test_a_context_too_small_to_measure_in_does_not_matter(attention_pair: Pair, cache: Path, size: int) -> None:
    settings = ModelSettings(threads=1, ctx_size=size)
    given = answer(attention_pair, settings=settings, draft_tokens="auto")
    assert given.generation.counters.tokens == size - 1


def test_nothing_is_measured_for_a_fixed_length(attention_pair: Pair, cache: Path) -> None:
    answer(attention_pair, max_tokens=4, draft_tokens=3)
    assert not cache.exists()


def test_the_key_tells_files_and_settings_apart(attention_pair: Pair, bad_draft_pair: Pair) -> None:
    assert isinstance(attention_pair.draft, Path)
    with loaded(attention_pair.target) as target, loaded(attention_pair.draft) as draft:
        keys = [
            calibration.key_of([target, draft], [1]),
            calibration.key_of([target], [1]),
            calibration.key_of([target, draft], [2]),
            calibration.key_of([draft, target], [1]),
        ]
        assert calibration.key_of([target, draft], [1]) == keys[0]
    assert len(set(keys)) == len(keys)


def test_the_key_of_a_file_that_was_removed_since_it_was_loaded_is_another(
    attention_pair: Pair, tmp_path: Path
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(attention_pair.target.read_bytes())
    with loaded(path) as weights:
        key = calibration.key_of([weights], [1])
        path.unlink()
        assert calibration.key_of([weights], [1]) != key


def test_greedy_text_is_the_same_at_an_adaptive_length(attention_pair: Pair, bad_draft_pair: Pair) -> None:
    exact = ModelSettings(threads=1, cache_type_k="f32", cache_type_v="f32", flash_attn="off")
    plain = answer(Pair(attention_pair.target, "none"), max_tokens=60, settings=exact).text
    for pair in (attention_pair, bad_draft_pair, Pair(attention_pair.target, "lookup")):
        assert answer(pair, max_tokens=60, draft_tokens="auto", settings=exact).text == plain
