"""`specdec tune` on toy models, as a user meets it."""

from __future__ import annotations

import io
import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from specdec_cli import cli
from specdec_cli.catalog import Pair, find_pair
from specdec_cli.errors import UsageError
from specdec_cli.settings import ModelSettings
from specdec_cli.terminal import Terminal
from specdec_cli.tune import saving, tuner
from specdec_cli.tune.finding import Finding, Ratio
from specdec_cli.tune.setting import Setting
from specdec_cli.tune.tuning import Tuning
from tests.commands.test_generate import Outcome
from tests.toy_gguf import attention_toy

OWN = """\
default = "toys"

[pairs.toys]
target = "target.gguf" # mine
draft = "draft.gguf"
threads = 1

[pairs.plain]
target = "target.gguf"
"""
RATIO = Ratio(10.0, 13.5, 1.35, 1.3, 1.4)
Tune = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of its own: the user's models.toml with two toys beside it."""
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_, **__: tmp_path)
    (tmp_path / "models.toml").write_text(OWN, "utf-8")
    attention_toy(3.0).write(tmp_path / "target.gguf")
    attention_toy(2.0).write(tmp_path / "draft.gguf")
    return tmp_path


@pytest.fixture
def run(home: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Tune:
    """Run `specdec tune` in this process, with no terminal on any stream."""

    def start(*arguments: object) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = cli.run(["tune", *map(str, arguments)])
        captured = capsysbinary.readouterr()
        return Outcome(code, captured.out.decode(), captured.err.decode())

    return start


@pytest.fixture
def finds(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Tuning]]:
    """Let a tuning find what a test says, and remember how it was begun."""
    begun: list[Tuning] = []

    def set_up(verdict: Any = "speculate", ratio: Ratio | None = RATIO, **more: Any) -> list[Tuning]:
        changes = more.pop("changes", {})

        def find(self: Tuning) -> Finding:
            begun.append(self)
            return Finding(replace(self.setting, **changes), verdict, ratio, **more)

        monkeypatch.setattr(Tuning, "find", find)
        return begun

    return set_up


def pairs(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((home / "models.toml").read_text("utf-8"))["pairs"]
    return found


def test_the_result_is_written_under_the_pair_and_said_where(run: Tune, home: Path, finds: Any) -> None:
    finds(changes={"draft_tokens": 3, "threads": 5, "draft_threads": 5})
    outcome = run()
    assert (outcome.code, outcome.err) == (0, f'note: "toys" in {home / "models.toml"} says so now\n')
    assert "drafting is 1.35 × plain decoding here" in outcome.out
    assert f"options: -d {home / 'draft.gguf'} -k 3 --threads 5\n" in outcome.out
    written = pairs(home)["toys"]
    assert (written["draft_tokens"], written["threads"], written["draft"]) == (3, 5, "draft.gguf")
    assert written["tuned"]["speed_up"] == 1.35
    assert 'target = "target.gguf" # mine' in (home / "models.toml").read_text("utf-8")
    assert find_pair(None, None).draft_tokens == 3


def test_the_races_begin_at_the_defaults_and_not_at_what_was_tuned_before(run: Tune, finds: Any) -> None:
    begun = finds()
    run("--threads", 1)
    assert begun[0].setting == Setting(begun[0].setting.chain, 1, 1)
    assert begun[0].organiser.fixed == {"threads"}


def test_a_promise_of_one_text_is_not_raced_away(run: Tune, home: Path, finds: Any) -> None:
    (home / "models.toml").write_text(OWN.replace("threads = 1", 'rule = "coupled"'), "utf-8")
    begun = finds()
    assert run().code == 0
    assert (begun[0].setting.rule, "rule" in begun[0].organiser.fixed) == ("coupled", True)
    assert pairs(home)["toys"]["rule"] == "coupled"


def test_a_dry_run_shows_and_writes_nothing(run: Tune, home: Path, finds: Any) -> None:
    finds(changes={"draft_tokens": 3})
    outcome = run("--dry-run")
    assert outcome.code == 0
    assert outcome.err == f'note: nothing is written; "toys" in {home / "models.toml"} would be as shown\n'
    shown = tomllib.loads(outcome.out[outcome.out.index("[pairs.toys]") :])
    assert shown["pairs"]["toys"]["draft_tokens"] == 3
    assert (home / "models.toml").read_text("utf-8") == OWN


def test_files_given_by_hand_are_only_written_with_a_name(run: Tune, home: Path, finds: Any) -> None:
    finds()
    files = ("-m", home / "target.gguf", "-d", "lookup")
    outcome = run(*files)
    assert (outcome.code, outcome.err) == (0, "")
    assert (home / "models.toml").read_text("utf-8") == OWN
    assert run(*files, "--save-as", "new").code == 0
    assert find_pair("new", None).drafters == ("lookup",)
    outcome = run(*files, "--save-as", "new")
    assert (outcome.code, outcome.out) == (2, "")
    assert 'has a pair named "new" already' in outcome.err


def test_another_draft_for_a_pair_is_not_written_under_its_name(run: Tune, home: Path, finds: Any) -> None:
    finds()
    assert run("toys", "-d", "lookup").code == 0
    assert (home / "models.toml").read_text("utf-8") == OWN


def test_not_to_speculate_is_an_answer(run: Tune, home: Path, finds: Any) -> None:
    finds("do not speculate", reason="passes are dear", advice=("a smaller draft",), changes={"draft_tokens": 0})
    outcome = run("toys")
    assert outcome.code == 0
    assert "do not speculate here, because passes are dear\nwhat would change it: a smaller draft\n" in outcome.out
    assert pairs(home)["toys"]["draft_tokens"] == 0
    assert pairs(home)["toys"]["tuned"]["reason"] == "passes are dear"


def test_without_time_nothing_is_written(run: Tune, home: Path, finds: Any) -> None:
    finds("undecided", None)
    outcome = run()
    assert (outcome.code, outcome.err) == (0, "")
    assert "give a longer --time-limit" in outcome.out
    assert (home / "models.toml").read_text("utf-8") == OWN


def test_ctrl_c_says_the_best_so_far_and_writes_nothing(run: Tune, home: Path, finds: Any) -> None:
    finds("undecided", None, interrupted=True)
    outcome = run()
    assert outcome.code == 130
    assert "interrupted; the best so far: -d " in outcome.out
    assert (home / "models.toml").read_text("utf-8") == OWN


def test_json_is_all_that_is_on_stdout(run: Tune, home: Path, finds: Any) -> None:
    finds(changes={"draft_tokens": 3})
    found = run("--json").json
    assert (found["pair"], found["verdict"], found["saved"]) == ("toys", "speculate", str(home / "models.toml"))
    assert found["keys"]["draft_tokens"] == 3
    assert run("--json", "--dry-run").json["saved"] is None


def test_a_pair_that_nobody_drafts_for_is_one_line(run: Tune, home: Path) -> None:
    for arguments in (["plain"], ["toys", "-d", "none"]):
        outcome = run(*arguments)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith("error: there is nothing to tune without a draft\nhint: ")


def test_a_damaged_table_is_one_line_and_stays(run: Tune, home: Path) -> None:
    (home / "models.toml").write_text("[pairs.toys\n", "utf-8")
    outcome = run()
    assert (outcome.code, outcome.out) == (2, "")
    assert "is not valid TOML" in outcome.err
    assert (home / "models.toml").read_text("utf-8") == "[pairs.toys\n"


def test_a_table_that_cannot_be_written_is_one_line_before_anything_loads(
    run: Tune, home: Path, finds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = finds()
    monkeypatch.setattr("os.access", lambda *_: False)
    outcome = run()
    assert (outcome.code, outcome.out, begun) == (2, "", [])
    assert "cannot be written" in outcome.err
    assert run("--dry-run").code == 0


def test_what_was_measured_is_told_even_if_it_cannot_be_written(
    run: Tune, home: Path, finds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    finds()

    def fail(*_: object, **__: object) -> None:
        raise UsageError("the disk is full")

    monkeypatch.setattr(saving, "add_pair", fail)
    outcome = run()
    assert outcome.code == 2
    assert "drafting is 1.35 × plain decoding here" in outcome.out
    assert outcome.err.startswith("error: the disk is full\n")


@pytest.mark.parametrize("draft", ["draft.gguf", "lookup"])
def test_a_whole_tuning_of_toys_runs_to_its_end(
    home: Path, draft: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that moves one second for each look decides how much is run: no test waits for a real one."""
    monkeypatch.setattr(tuner, "usable_cpus", lambda: 1)
    ticks = iter(range(10**6))
    pair = Pair(home / "target.gguf", "lookup" if draft == "lookup" else home / draft)
    order = tuner.Order(pair, ModelSettings(threads=1), None, 400, dry_run=False, json=True, verbose=False)
    assert tuner.tune(order, Terminal.of_process(), clock=lambda: float(next(ticks))) == 0
    found = json.loads(capsysbinary.readouterr().out)
    assert found["verdict"] in ("speculate", "do not speculate", "undecided")
    assert found["figures"]["plain"] > 0
    choices = [stage["choice"] for stage in found["stages"]]
    assert ("drafters" in choices) == (draft != "lookup")
    assert choices[-1] == "against plain decoding"
    assert any(row["runs"] > 1 for stage in found["stages"] for row in stage["tried"])
