from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli.core.costs import Costs
from specdec_cli.core.stats import Counters
from specdec_cli.errors import ModelError
from specdec_cli.tune.setting import Chain, Setting
from tests.tune.fakes import PROMPTS, FakeCourse, tune

MODEL = Path("small.gguf")
PAIR: Chain = (MODEL,)
START = Setting(PAIR, 1, 1)
COSTS = Costs((1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 1.9, 2.1), {"model": (0.1,) * 8})


def guesses(alpha: float) -> Counters:
    return Counters(rounds=100, drafted=200, accepted=round(100 * alpha), examined=100, overlap=100 * alpha)


def law(setting: Setting, prompt: int) -> float:
    """Best: four of eight threads with two for the draft, lookup before the model, three tokens, the token rule."""
    speed = 10 * {8: 0.8, 4: 1.0, 6: 0.9}.get(setting.threads, 0.5)
    if setting.draft_tokens == 0:
        return speed
    speed *= {2: 1.1}.get(setting.draft_threads, 1.0)
    speed *= 1.4 if setting.chain == ("lookup", MODEL) else 1.1
    speed *= {"auto": 1.0, 3: 1.2}.get(setting.draft_tokens, 0.9)
    speed *= 1.1 if setting.rule == "token" else 1.0
    return speed * (1.1 if setting.draft_temperature == "same" else 1.0)


def test_the_races_find_the_best_of_every_choice() -> None:
    course = FakeCourse(
        law, 0.02, COSTS, guesses(0.75), reading=lambda each: 900.0 if each.batch_size == 128 else 400.0
    )
    finding = tune(course, Setting(PAIR, 8, 8), seconds=900, cpus=8)
    assert finding.setting == Setting(("lookup", MODEL), 4, 2, 3, "token", "same", 128)
    assert finding.verdict == "speculate"
    assert finding.ratio is not None
    assert finding.ratio.speed_up == pytest.approx(1.1 * 1.4 * 1.2 * 1.1 * 1.1, rel=0.05)
    assert finding.ratio.lowest < finding.ratio.speed_up < finding.ratio.highest


def test_the_table_says_what_was_tried_and_what_became_of_it() -> None:
    finding = tune(FakeCourse(law, 0.02, COSTS, guesses(0.75)), START, seconds=900)
    stages = {stage.title: {row.words: row for row in stage.rows} for stage in finding.stages}
    assert list(stages) == [
        "drafters",
        "draft length",
        "rule",
        "draft temperature",
        "batch size",
        "against plain decoding",
    ], "one CPU leaves no threads to choose"
    assert stages["drafters"]["lookup,model"].fate == "chosen"
    assert stages["drafters"]["model"].fate.startswith("slower, after")
    assert stages["drafters"]["lookup,model"].times_plain == pytest.approx(1.4, rel=0.05)
    assert stages["drafters"]["plain"].times_plain == 1
    assert stages["batch size"]["2048"].times_plain is None
    assert stages["batch size"]["128"].fate == "as fast as the chosen one"


def test_one_that_leaves_all_others_far_behind_is_chosen_although_not_every_prompt_was_run() -> None:
    course = FakeCourse(lambda setting, _: 30.0 if setting.chain == ("lookup",) else 10.0, 0.02, COSTS, guesses(0.75))
    finding = tune(course, START, seconds=900)
    rows = {row.words: row for row in finding.stages[0].rows}
    assert (rows["lookup"].runs, rows["lookup"].fate) == (2, "chosen")
    assert rows["model"].fate == "slower, after 2 runs"


def test_ties_keep_the_simple_defaults() -> None:
    course = FakeCourse(lambda setting, _: 15.0 if setting.draft_tokens else 10.0, 0.01, COSTS, guesses(0.75))
    start = Setting(PAIR, 4, 4)
    assert tune(course, start, cpus=4).setting == start


def test_a_pair_that_loses_is_told_not_to_speculate_with_the_reason_and_the_way_out() -> None:
    costs = Costs((1.0, 1.4, 1.7, 2.6, 3.5, 4.4), {"model": (0.4,) * 6})
    course = FakeCourse(lambda setting, _: 8.0 if setting.draft_tokens else 10.0, 0.02, costs, guesses(0.3))
    finding = tune(course, START)
    assert finding.verdict == "do not speculate"
    assert finding.setting.draft_tokens == 0
    assert finding.reason.startswith(
        "30% of the guesses are right, and 80% would have to be; the best setting reached 0.80 × plain decoding ("
    )
    assert finding.advice == (
        "another quantisation of the target, whose passes over several tokens are cheaper: here one over 4 takes 2.6 "
        "plain steps (Q4_0, Q8_0 and F16 often take less than the K-quants)",
        "a smaller draft, lookup or a table: a drafted token takes 0.40 of a plain step",
        "a better draft: 80% of its guesses would have to be right, 30% are",
    )


def test_as_fast_as_plain_is_no_reason_to_draft() -> None:
    finding = tune(FakeCourse(lambda *_: 10.0, 0.01, COSTS, guesses(0.75)), START)
    assert (finding.verdict, finding.setting.draft_tokens) == ("do not speculate", 0)


@pytest.mark.parametrize("seconds", [20, 60, 180, 900])
def test_it_stops_in_time(seconds: float) -> None:
    course = FakeCourse(law, 0.02, COSTS, guesses(0.75))
    start = course.clock.now
    tune(course, Setting(PAIR, 8, 8), seconds=seconds, cpus=8)
    longest = 32 / 5
    assert course.clock.now - start <= seconds + 2 * longest


def test_too_little_time_decides_nothing_and_says_so() -> None:
    finding = tune(FakeCourse(law, 0.02, COSTS, guesses(0.75)), START, seconds=12)
    assert (finding.verdict, finding.ratio) == ("undecided", None)
    assert {row.fate for stage in finding.stages for row in stage.rows} == {"not tried, too little time"}


def test_one_setting_that_fails_costs_only_itself() -> None:
    def fails(setting: Setting, prompt: int) -> float:
        if setting.chain == ("lookup",):
            raise ModelError("lookup is broken")
        return law(setting, prompt)

    finding = tune(FakeCourse(fails, 0.02, COSTS, guesses(0.75)), START, seconds=900)
    assert finding.setting.chain == ("lookup", MODEL)
    fates = {row.words: row.fate for stage in finding.stages for row in stage.rows}
    assert fates["lookup"] == "failed: lookup is broken"


def test_ctrl_c_leaves_the_best_so_far() -> None:
    def stops(setting: Setting, prompt: int) -> float:
        if setting.draft_tokens == 3:
            raise KeyboardInterrupt
        return law(setting, prompt)

    finding = tune(FakeCourse(stops, 0.02, COSTS, guesses(0.75)), START, seconds=900)
    assert finding.interrupted
    assert (finding.setting.chain, finding.ratio) == (("lookup", MODEL), None)


def test_every_setting_meets_the_same_prompts_and_seeds() -> None:
    course = FakeCourse(law, 0.02, COSTS, guesses(0.75))
    tune(course, START, seconds=900)
    lookups = [cell for setting, cell in course.runs if setting.chain == ("lookup",)]
    assert lookups == list(range(len(lookups)))
    ruled = [cell for setting, cell in course.runs if setting.rule == "token"]
    assert {cell % PROMPTS for cell in ruled[:2]} == {1, 3}, "greedy answers do not depend on the rule"


def test_what_the_user_fixed_is_not_raced() -> None:
    course = FakeCourse(law, 0.02, COSTS, guesses(0.75))
    finding = tune(course, Setting(PAIR, 8, 8), seconds=900, cpus=8, fixed=("threads", "draft threads", "rule"))
    assert (finding.setting.threads, finding.setting.draft_threads, finding.setting.rule) == (8, 8, "block")


def test_where_nothing_is_known_of_the_guesses_short_lengths_are_tried() -> None:
    finding = tune(FakeCourse(law, 0.02), START, seconds=900)
    rows = next(stage.rows for stage in finding.stages if stage.title == "draft length")
    assert [row.words for row in rows] == ["auto", "2", "4", "plain"]


def test_what_a_busy_machine_hides_is_not_called_a_loss() -> None:
    finding = tune(FakeCourse(lambda *_: 10.0, 0.5, COSTS, guesses(0.75)), START)
    assert (finding.verdict, finding.ratio is None) == ("undecided", False)
