"""`specdec audit` as a user meets it: its report, its JSON, its exit codes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.audit import running
from specdec_cli.audit.auditing import Extent
from specdec_cli.catalog import Pair
from specdec_cli.cli import run
from specdec_cli.core import verify
from tests.audit.toy_audits import SHORT
from tests.wrong_samplers import WRONG_RULES

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it may take, an audit of a toy is short."""
    monkeypatch.setattr(running, "Extent", lambda **_: SHORT)


def audited(pair: Pair, *more: str) -> list[str]:
    return ["audit", "-m", str(pair.target), "-d", str(pair.draft), "--threads", "1", *more]


def test_a_sound_pair_passes(attention_pair: Pair, capsys: Captured) -> None:
    assert run(audited(attention_pair, "--seed", "7")) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert "target.gguf" in lines[0]
    assert "draft.gguf" in lines[0]
    assert "seed 7" in lines[0]
    assert "nothing wrong found" in lines[-1]
    assert err == ""


def test_a_fault_is_exit_code_1_and_repeats_with_its_seed(
    bad_draft_pair: Pair, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(verify.RULES, "token", WRONG_RULES["accept all"])
    reports: list[dict[str, Any]] = []
    for seed in ([], ["--seed"]):
        given = [*seed, *([str(reports[0]["seed"])] if seed else [])]
        assert run(audited(bad_draft_pair, "--json", *given)) == 1
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0]["passed"] is False
    assert reports[0]["checks"][-1] == reports[1]["checks"][-1]
    assert reports[0]["checks"][-1]["passed"] is False


def test_ctrl_c_is_exit_code_130_with_what_was_found(
    attention_pair: Pair, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press(task: str, share: float | None) -> str:
        if "coupled" in task:
            raise KeyboardInterrupt
        return task

    monkeypatch.setattr(running, "to_progress", press)
    assert run(audited(attention_pair)) == 130
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["pair", "greedy", "verdict"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-m", "big.gguf", "-d", "none"], "this pair has no draft: there is nothing to audit"),
        (["-m", "big.gguf", "--time-limit", "x"], "--time-limit x is not a number"),
        (["-m", "big.gguf", "--time-limit", "-1"], "--time-limit -1 is not in 0..86400"),
        (["-m", "big.gguf", "--seed", "-1"], "--seed -1 is not in 0..9007199254740991"),
        (["some", "-m", "big.gguf"], "PAIR and --target both name the big model"),
    ],
)
def test_what_cannot_be_audited_is_one_line(capsys: Captured, arguments: list[str], complaint: str) -> None:
    assert run(["audit", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == f"error: {complaint}"


def test_a_missing_model_is_exit_code_3(capsys: Captured, tmp_path: Path) -> None:
    assert run(["audit", "-m", str(tmp_path / "none.gguf")]) == 3
    assert "none.gguf" in capsys.readouterr().err


def test_a_minute_is_what_it_takes_unless_told_otherwise(
    attention_pair: Pair, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def extent(seconds: float) -> Extent:
        asked.append(seconds)
        return SHORT

    monkeypatch.setattr(running, "Extent", extent)
    assert run(audited(attention_pair)) == run(audited(attention_pair, "--time-limit", "5")) == 0
    assert asked == [60.0, 5.0]
