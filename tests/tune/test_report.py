from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

from specdec_cli.tune.finding import Finding, Ratio, Row, Stage
from specdec_cli.tune.report import to_json, to_options, to_report
from specdec_cli.tune.setting import Setting

SETTING = Setting(("lookup", Path("/my models/small.gguf")), 8, 4, 3, "token", "same", 256)
RATIO = Ratio(10.0, 13.5, 1.35, 1.3, 1.4)
STAGES = (
    Stage(
        "drafters", (Row("small.gguf", 12.0, 1.2, 4, "chosen"), Row("x" * 50, None, None, 0, "failed: no \x1b memory"))
    ),
    Stage("rule", (Row("block", None, None, 0, "not tried, too little time"),) * 2),
)


def test_options_say_the_setting_and_leave_defaults_out() -> None:
    assert shlex.split(to_options(SETTING)) == [
        *("-d", "lookup,/my models/small.gguf", "-k", "3", "--rule", "token", "--draft-temperature", "same"),
        *("--threads", "8", "--draft-threads", "4", "--batch-size", "256"),
    ]
    assert to_options(Setting(("lookup",), 2, 2)) == "-d lookup -k auto --threads 2"
    assert to_options(SETTING.plain) == "-d none --threads 8 --batch-size 256"


def test_the_report_is_a_table_that_fits_80_columns_and_a_verdict() -> None:
    lines = to_report(Finding(SETTING, "speculate", RATIO, stages=STAGES)).splitlines()
    assert lines[1] == "drafters"
    assert lines[2].split() == ["small.gguf", "12.0", "1.20", "4", "chosen"]
    assert lines[3].startswith("  …xxx")
    assert "␛" in lines[3], "what a terminal would obey is made visible"
    assert lines[4] == "rule: not tried, too little time"
    assert lines[6] == "drafting is 1.35 × plain decoding here (1.30 to 1.40): 13.5 tokens/s after 10.0"
    assert lines[7] == f"options: {to_options(SETTING)}"
    assert max(map(len, lines[:5])) <= 80


def test_the_answer_may_be_not_to_speculate_and_what_would_change_it() -> None:
    finding = Finding(
        SETTING.plain, "do not speculate", RATIO, "passes are dear", ("a smaller draft", "another target")
    )
    assert to_report(finding).splitlines()[1:] == [
        "do not speculate here, because passes are dear",
        "what would change it: a smaller draft",
        "what would change it: another target",
        "options: -d none --threads 8 --batch-size 256",
    ]


def test_what_is_unfinished_says_so() -> None:
    short = Finding(SETTING, "undecided", None)
    assert "1.30 to 1.40 × plain decoding here, which decides nothing" in to_report(replace(short, ratio=RATIO))
    assert "give a longer --time-limit" in to_report(short)
    assert to_report(replace(short, interrupted=True)).startswith("\ninterrupted; the best so far: -d ")


def test_the_json_holds_nothing_that_a_terminal_obeys() -> None:
    text = to_json(Finding(SETTING, "undecided", None), pair="\x9b2J\x7f")
    assert json.loads(text)["pair"] == "\x9b2J\x7f"
    assert [character for character in text if not character.isprintable()] == ["\n"]


def test_json_has_all_of_it() -> None:
    found = json.loads(to_json(Finding(SETTING, "speculate", RATIO, stages=STAGES), pair="p", saved=None))
    assert (found["version"], found["verdict"], found["pair"], found["saved"]) == (1, "speculate", "p", None)
    assert found["settings"] == {
        "draft": "lookup,/my models/small.gguf",
        "draft_tokens": 3,
        "rule": "token",
        "draft_temperature": "same",
        "threads": 8,
        "draft_threads": 4,
        "batch_size": 256,
    }
    assert found["figures"]["speed_up"] == 1.35
    assert found["stages"][0]["tried"][0] == {
        "setting": "small.gguf",
        "tokens_per_second": 12.0,
        "times_plain": 1.2,
        "runs": 4,
        "fate": "chosen",
    }
