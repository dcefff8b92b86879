"""Cells: ratios within a turn, their medians, and turns that were cut short."""

from __future__ import annotations

import pytest

from specdec_cli.bench.cells import Cell, Spread, to_cells
from specdec_cli.bench.measuring import Sample
from specdec_cli.bench.prompts import ALL
from specdec_cli.limits import DraftTokens
from tests.bench.answers import plain_rounds, round_of, sample, three_ways


def cell_of(samples: list[Sample], kind: str, length: DraftTokens) -> Cell:
    return next(each for each in to_cells(samples) if (each.kind, each.draft_tokens) == (kind, length))


def test_a_speed_up_compares_answers_of_one_turn_and_is_the_median_over_turns() -> None:
    samples = []
    for turn, (slower, speed_up) in enumerate([(1, 1.2), (4, 1.5), (2, 1.3)]):
        samples += [
            sample("code", 0, plain_rounds(20), 2.0 * slower, turn=turn),
            sample("code", 2, [round_of(2, 1)] * 5, 1.0 * slower / speed_up, turn=turn),
        ]
    cell = cell_of(samples, "code", 2)
    assert cell.speed_up is not None
    assert cell.speed_up == Spread(pytest.approx(1.3), pytest.approx(1.2), pytest.approx(1.5))  # type: ignore[arg-type]
    assert cell.speed.median == pytest.approx(6.5)
    assert cell.counters.tokens == 30


def test_all_kinds_together_weigh_the_time_of_a_token_alike() -> None:
    samples = [
        sample("code", 0, plain_rounds(100), 10.0),
        sample("code", 2, [round_of(2, 1)] * 50, 5.0),
        sample("prose", 0, plain_rounds(10), 1.0),
        sample("prose", 2, [round_of(2, 0)] * 10, 2.0),
    ]
    cell = cell_of(samples, ALL, 2)
    assert cell.speed_up is not None
    assert cell.speed_up.median == pytest.approx(2 * 0.1 / (0.05 + 0.2))


def test_one_kind_alone_is_not_shown_twice() -> None:
    assert {each.kind for each in to_cells(three_ways("code", (1, 1)))} == {"code"}


def test_a_turn_that_was_cut_short_does_not_count_among_whole_ones() -> None:
    samples = three_ways("code", (1.2, 1.3)) + three_ways("prose", (0.8, 0.9))
    cut = three_ways("code", (9, 9), turn=1)
    for length in (2, "auto"):
        assert cell_of(samples + cut, ALL, length).speed_up == cell_of(samples, ALL, length).speed_up
        assert cell_of(samples + cut, "code", length).speed_up != cell_of(samples, "code", length).speed_up


def test_all_kinds_together_hold_only_prompts_that_met_every_length() -> None:
    samples = three_ways("code", (1.2, 1.3))
    half = [*samples, *three_ways("prose", (0.8, 0.9))[:2]]
    assert cell_of(half, ALL, 2).speed_up == cell_of(samples, "code", 2).speed_up


def test_an_answer_without_its_plain_one_has_a_speed_and_no_speed_up() -> None:
    cell = cell_of([sample("code", 2, [round_of(2, 1)] * 5, 1.0)], "code", 2)
    assert (cell.speed.median, cell.speed_up) == (10, None)


def test_an_answer_without_a_token_tells_nothing() -> None:
    assert to_cells([sample("code", 0, [], 1.0)]) == []
