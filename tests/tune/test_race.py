from __future__ import annotations

import math
import random

import pytest

from specdec_cli.errors import ModelError
from specdec_cli.tune.race import Race, compare

PROMPTS = 4


def noisy(speeds: dict[str, float], spread: float, seed: int = 1) -> Race[str]:
    luck = random.Random(seed)
    return Race(list(speeds), lambda each, _: speeds[each] * math.exp(luck.gauss(0, spread)), prompts=PROMPTS)


def finish(race: Race[str], cells: int = 32) -> str:
    while len(race.running) > 1 and race.cells < cells:
        race.run_cell()
    return race.winner().contender


def test_the_fastest_wins_and_the_slower_ones_are_dropped_early() -> None:
    race = noisy({"default": 10, "fast": 14, "slow": 5}, 0.03)
    assert finish(race) == "fast"
    fates = {lane.contender: lane.out for lane in race.lanes}
    assert fates["slow"] == "slower, after 2 runs"
    assert fates["default"] == "slower, after 4 runs"
    assert fates["fast"] == ""


def test_a_tie_goes_to_the_simpler_one() -> None:
    assert finish(noisy({"default": 10, "other": 10, "third": 10.02}, 0.01)) == "default"


@pytest.mark.parametrize("others", [1, 5])
def test_noise_does_not_decide_although_one_looks_after_every_cell_and_at_many(others: int) -> None:
    speeds = dict.fromkeys(("default", *map(str, range(others))), 10.0)
    assert sum(finish(noisy(speeds, 0.06, seed)) == "default" for seed in range(100)) >= 85


def test_a_small_gain_needs_repeats_to_be_believed() -> None:
    race = noisy({"default": 10, "other": 10.4}, 0.005)
    for _ in range(PROMPTS):
        race.run_cell()
    assert race.winner().contender == "default"
    assert finish(race) == "other"


def test_what_is_not_worth_a_change_is_none_however_sure() -> None:
    assert finish(noisy({"default": 10, "other": 10.05}, 0)) == "default"


def test_a_setting_that_is_better_at_one_kind_of_prompt_is_compared_over_all() -> None:
    def run(contender: str, cell: int) -> float:
        return {"even": 10, "odd": 20 if cell % PROMPTS == 0 else 9.9}[contender]

    race = Race(["even", "odd"], run, prompts=PROMPTS)
    assert finish(race) == "odd"
    margin = compare(race.lanes[1].speeds, race.lanes[0].speeds, PROMPTS)
    assert margin is not None
    assert margin.mean == pytest.approx((math.log(2) + 3 * math.log(0.99)) / 4)


def test_all_run_the_same_cells_in_turned_order() -> None:
    seen: list[tuple[str, int]] = []

    def run(contender: str, cell: int) -> float:
        seen.append((contender, cell))
        return 10

    race = Race(["a", "b"], run, prompts=PROMPTS)
    race.run_cell()
    race.run_cell()
    assert seen == [("a", 0), ("b", 0), ("b", 1), ("a", 1)]


def test_one_that_fails_is_out_with_its_reason_and_the_others_go_on() -> None:
    def run(contender: str, cell: int) -> float:
        if contender == "broken":
            raise ModelError("no memory")
        return {"default": 10, "fast": 20}[contender]

    race = Race(["default", "broken", "fast"], run, prompts=PROMPTS)
    assert finish(race) == "fast"
    assert race.lanes[1].out == "failed: no memory"


def test_where_all_fail_the_last_failure_is_told() -> None:
    def run(contender: str, cell: int) -> float:
        raise ModelError(f"{contender} fails")

    race = Race(["a", "b"], run, prompts=PROMPTS)
    with pytest.raises(ModelError, match="b fails"):
        race.run_cell()


def test_a_silent_cell_counts_for_nobody() -> None:
    race = Race(["a", "b"], lambda each, cell: None if cell == 1 and each == "b" else 10.0, prompts=PROMPTS)
    assert finish(race, 8) == "a"
    assert 1 not in race.lanes[1].speeds
    assert race.lanes[1].speed == pytest.approx(10)


def test_before_every_prompt_was_run_nothing_is_decided() -> None:
    race = noisy({"default": 10, "fast": 14}, 0)
    race.run_cell()
    assert not race.is_decided
    assert race.winner().contender == "default"


def test_nothing_in_common_is_no_comparison() -> None:
    assert compare({0: 1.0}, {1: 1.0}, PROMPTS) is None


def test_a_reference_runs_along_in_every_cell_and_cannot_win() -> None:
    race = Race(["a", "b"], lambda each, _: {"a": 10.0, "b": 11.0, "plain": 99.0}[each], prompts=4, reference="plain")
    assert finish(race) == "b"
    assert race.reference is not None
    assert race.reference.speeds.keys() == race.lanes[0].speeds.keys()
