"""`specdec theory`: the papers' own tables, and what a wrong number is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specdec_cli.cli import run

Captured = pytest.CaptureFixture[str]


def predicted(capsys: Captured, *arguments: object) -> dict[str, object]:
    assert run(["theory", "--json", *map(str, arguments)]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def speed_ups(prediction: dict[str, object]) -> list[float]:
    rows = prediction["rows"]
    assert isinstance(rows, list)
    return [row["speed_up"] for row in rows]


@pytest.mark.parametrize(("alpha", "c", "expected"), [(0.75, 0.02, 3.2), (0.80, 0.04, 3.3), (0.82, 0.11, 2.5)])
def test_it_gives_table_4_of_leviathan_et_al(capsys: Captured, alpha: float, c: float, expected: float) -> None:
    prediction = predicted(capsys, "--alpha", alpha, "--c", c, "-k", 7)
    assert speed_ups(prediction)[7] == pytest.approx(expected, abs=0.05)


def test_a_bigram_draft_reaches_its_ceiling(capsys: Captured) -> None:
    prediction = predicted(capsys, "--alpha", 0.2)
    assert max(speed_ups(prediction)) == pytest.approx(1.25, abs=1e-6)
    assert prediction["ceiling"] == pytest.approx(1.25)


def test_plain_decoding_is_length_0_and_wins_where_checking_is_dear(capsys: Captured) -> None:
    prediction = predicted(capsys, "--alpha", 0.9, "--v", "1,2,3")
    assert (speed_ups(prediction)[0], prediction["best"]) == (1.0, 0)
    assert run(["theory", "--alpha", "0.9", "--v", "1,2,3"]) == 0
    assert "no draft length pays" in capsys.readouterr().out


def test_costs_come_in_any_unit_and_from_a_file(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("20 30\n32\n", "utf-8")
    from_file = predicted(capsys, "--alpha", 0.7, "--c", 0.1, "--v", path)
    assert speed_ups(from_file) == pytest.approx(
        speed_ups(predicted(capsys, "--alpha", 0.7, "--c", 0.1, "--v", "1,1.5,1.6"))
    )


def test_a_guess_that_is_always_right_has_no_ceiling(capsys: Captured) -> None:
    prediction = predicted(capsys, "--alpha", 1, "-k", 3)
    assert (prediction["ceiling"], speed_ups(prediction)) == (None, [1.0, 2.0, 3.0, 4.0])


def test_the_table_shows_every_length_and_the_best_bar_is_the_longest(capsys: Captured) -> None:
    assert run(["theory", "--alpha", "0.8", "--c", "0.2", "-k", "5"]) == 0
    *rows, _, verdict = capsys.readouterr().out.splitlines()
    bars = {int(row.split()[0]): row.count("█") for row in rows[1:]}
    assert list(bars) == [0, 1, 2, 3, 4, 5]
    best = int(verdict.split("γ = ")[1].split(",")[0])
    assert bars[best] == max(bars.values()) == 24


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--alpha", "1.5"], "--alpha 1.5 is not in 0..1"),
        (["--alpha", "x"], "--alpha x is not a number"),
        (["--alpha", "0.5", "--c", "-1"], "--c -1 is not in 0..1000"),
        (["--alpha", "0.5", "--v", "1,x"], "--v 1,x is not a list of numbers"),
        (["--alpha", "0.5", "--v", ""], "--v  needs one positive number at least, and no other kind"),
        (["--alpha", "0.5", "--v", "1,0"], "--v 1,0 needs one positive number at least, and no other kind"),
        (["--alpha", "0.5", "--v", "nan"], "--v nan needs one positive number at least, and no other kind"),
    ],
)
def test_a_wrong_number_is_one_line(capsys: Captured, arguments: list[str], complaint: str) -> None:
    assert run(["theory", *arguments]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: {complaint}"
