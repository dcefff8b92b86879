"""`specdec theory`: the papers' own tables, and what a wrong number is told."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.bench.writing import to_json
from specdec_cli.catalog import Pair
from specdec_cli.cli import run
from specdec_cli.core.costs import Costs
from specdec_cli.session import Session
from tests.bench.answers import COSTS, plain_rounds, report, round_of, sample

Captured = pytest.CaptureFixture[str]


def predicted(capsys: Captured, *arguments: object) -> dict[str, object]:
    assert run(["theory", "--json", *map(str, arguments)]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def from_file(capsys: Captured, *arguments: object) -> dict[str, Any]:
    """The one prediction of what was measured."""
    predictions = predicted(capsys, *arguments)["predictions"]
    assert isinstance(predictions, list)
    (prediction,) = predictions
    assert isinstance(prediction, dict)
    return prediction


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
        (["--alpha", "0.5", "--v", "1,1e308"], "--v 1,1e308 says what no pass can cost: 1 to 1e+308"),
        (["--alpha", "0.5", "--v", "1e-320,1"], "--v 1e-320,1 says what no pass can cost: 9.99989e-321 to 1"),
    ],
)
def test_a_wrong_number_is_one_line(capsys: Captured, arguments: list[str], complaint: str) -> None:
    assert run(["theory", *arguments]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: {complaint}"


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """γ = 2: the first place is kept in 3 of 4 rounds, the second in 2 of 3 of these; c 0.1, v(3) 1.4."""
    rounds = [round_of(2, 2)] * 20 + [round_of(2, 1)] * 10 + [round_of(2, 0)] * 10
    path = tmp_path / "bench.json"
    samples = [sample("code", 0, plain_rounds(40), 4.0), sample("code", 2, rounds, 6.0)]
    path.write_text(to_json(report(samples)), "utf-8")
    return path


def test_a_bench_brings_alpha_by_place_and_costs_and_is_set_beside_what_it_measured(
    capsys: Captured, bench: Path
) -> None:
    assert predicted(capsys, bench)["file"] == str(bench)
    prediction = from_file(capsys, bench, "-k", 3)
    assert prediction["alphas"] == pytest.approx([0.75, 2 / 3])
    assert prediction["alpha"] == pytest.approx(50 / 70, rel=1e-3)
    assert (prediction["c"], prediction["share"], prediction["v"][:3]) == (0.1, 1, [1, 1.2, 1.4])
    tokens = [row["tokens_per_round"] for row in prediction["rows"]]
    assert tokens == pytest.approx([1, 1.75, 2.25, 2.25 + 0.5 * 50 / 70], rel=1e-3)
    assert [row["speed_up"] for row in prediction["rows"]][2] == pytest.approx(2.25 / 1.6)
    assert [row["measured"] for row in prediction["rows"]] == [None, None, pytest.approx(90 / 6 / 10), None]
    assert prediction["ceiling"] == pytest.approx(2.25 + 0.5 * 2.5, rel=1e-3)
    assert run(["theory", str(bench), "-k", "3"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "temperature 0: α 0.71 (by place 0.75, 0.67), c 0.10"
    assert shown[1].split()[-1] == "measured"
    assert shown[4].split()[3:7] == ["1.41", "×", "1.50", "×"]


def test_what_is_given_by_hand_counts_and_nothing_is_measured_of_it(capsys: Captured, bench: Path) -> None:
    for option, value in (("--c", "0"), ("--alpha", "0.9"), ("--v", "1,1,1")):
        prediction = from_file(capsys, bench, option, value, "-k", 2)
        assert all(row["measured"] is None for row in prediction["rows"])
        assert prediction["rows"][2]["speed_up"] != pytest.approx(2.25 / 1.6)
    prediction = from_file(capsys, bench, "--c", 0, "--alpha", 0.5, "--v", "2,2", "-k", 1)
    assert (prediction["rows"][1]["speed_up"], prediction["alphas"]) == (1.5, [])


def traced(pair: Pair, trace: Path, length: object) -> Path:
    """The trace of an answer that drafted `length` tokens a round."""
    prompt = trace.with_name("prompt.txt")
    prompt.write_text("hi", "utf-8")
    models = ("-m", pair.target, "-d", pair.draft, "--threads", 1)
    arguments = ("generate", "-f", prompt, *models, "-k", length, "--temperature", 0, "-n", 60, "--trace", trace)
    assert run([*map(str, arguments)]) == 0
    return trace


def test_a_trace_brings_them_too(
    capsys: Captured, attention_pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "known_costs", lambda _: COSTS)
    trace = traced(attention_pair, tmp_path / "a.trace", 3)
    capsys.readouterr()
    prediction = from_file(capsys, trace, "-k", 2)
    assert (prediction["name"], prediction["alpha"], prediction["ceiling"]) == ("all answers", 1, None)
    assert (prediction["c"], prediction["v"]) == (0.1, list(COSTS.target))


def test_a_trace_without_costs_says_what_to_give(
    capsys: Captured, attention_pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    trace = traced(attention_pair, tmp_path / "a.trace", 3)
    capsys.readouterr()
    assert run(["theory", str(trace)]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: {trace} does not tell what passes cost"
    assert run(["theory", str(trace), "--v", "1,1.2"]) == 2, "nor what a drafted token costs"
    assert run(["theory", str(trace), "--v", "1,1.2", "--c", "0.1"]) == 0


def test_without_a_file_alpha_is_needed(capsys: Captured) -> None:
    assert run(["theory", "--c", "0.1"]) == 2
    assert capsys.readouterr().err.splitlines()[0] == "error: there is no --alpha and no FILE that holds one"


def test_costs_that_fall_do_not_fall_below_nothing(capsys: Captured) -> None:
    rows = predicted(capsys, "--alpha", 0.5, "--v", "2,1", "-k", 6)["rows"]
    assert isinstance(rows, list)
    assert [row["cost"] for row in rows] == [1.0] + [0.5] * 6


def test_an_alpha_by_hand_does_not_bring_a_draft_where_there_was_none(capsys: Captured, tmp_path: Path) -> None:
    rounds = [round_of(1, 1, source="lookup")] * 10 + plain_rounds(30)
    samples = [sample("code", 0, plain_rounds(10), 1.0), sample("code", 1, rounds, 4.0)]
    path = tmp_path / "bench.json"
    path.write_text(to_json(report(samples, costs=Costs(COSTS.target))), "utf-8")
    prediction = from_file(capsys, path, "--alpha", 0.6, "-k", 1)
    assert prediction["rows"][1]["tokens_per_round"] == pytest.approx(1 + 0.25 * 0.6)
    assert run(["theory", str(path), "--alpha", "0.6"]) == 0
    assert "1 / (1 − α)" not in capsys.readouterr().out


def test_a_stream_of_another_encoding_gets_utf_8_as_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr("sys.stdout", out)
    assert run(["theory", "--alpha", "0.5"]) == 0
    out.seek(0)
    assert "γ" in out.buffer.read().decode("utf-8")


def test_a_file_of_costs_that_cannot_be_read_says_why(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "v.txt"
    path.touch()
    monkeypatch.setattr(Path, "read_text", refuse)
    assert run(["theory", "--alpha", "0.5", "--v", str(path)]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: --v {path} cannot be read: Permission denied"
