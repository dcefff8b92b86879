"""`specdec bench` on toy models, as a user meets it: a table, JSON, CSV, pictures, a trace, an end in the middle."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.bench.measuring import Measurement, measure
from specdec_cli.bench.running import Run
from specdec_cli.bench.running import run as answered
from specdec_cli.calibration import Measured
from specdec_cli.catalog import Pair
from specdec_cli.cli import run
from specdec_cli.errors import ModelError
from tests.bench.answers import COSTS
from tests.pty_process import PtyProcess

SHORT = ("--threads", 1, "-n", 8, "-k", "2,auto", "--temperature", "0,1")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1, "one object on one line"
        return json.loads(self.out)


Bench = Callable[..., Outcome]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    """Two kinds, one of which has two prompts."""
    path = tmp_path / "prompts.jsonl"
    lines = [{"name": "code", "prompt": "a"}, {"name": "prose", "prompt": "b"}, {"name": "prose", "prompt": "c"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture(autouse=True)
def costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of no machine, so that nothing depends on this one, nor has to be measured, and none are kept yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("specdec_cli.calibration.measure", lambda *_: Measured(COSTS, True))


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], attention_pair: Pair, prompts: Path) -> Bench:
    """Run `specdec bench` on a toy pair in this process."""

    def start(*arguments: object, draft: object = attention_pair.draft) -> Outcome:
        models = ("-m", attention_pair.target, "-d", draft)
        code = run(["bench", *map(str, (*models, "--prompts", prompts, *SHORT, *arguments))])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return start


def test_the_answer_is_a_table_with_a_verdict_last_and_stderr_is_empty_in_a_pipe(bench: Bench) -> None:
    outcome = bench()
    assert (outcome.code, outcome.err) == (0, "")
    table, legend, words = outcome.out.split("\n\n")
    assert [line.split()[:3] for line in table.splitlines()[1:4]] == [
        ["code", "0", "plain"],
        ["code", "0", "2"],
        ["code", "0", "auto"],
    ]
    assert len(table.splitlines()) == 1 + 3 * 2 * 3
    assert legend.startswith("× plain:")
    assert words.splitlines()[-1].startswith("verdict  at temperature 0 ")


def test_json_counts_every_answer_and_agrees_with_itself(bench: Bench) -> None:
    result = bench("--json", "--repeat", 2).json
    assert result["answers"] == {"planned": 36, "done": 36, "stopped": None, "error": None}
    cells = {(each["prompts"], each["temperature"], each["draft_tokens"]): each for each in result["cells"]}
    assert len(cells) == 3 * 2 * 3
    assert cells["prose", 0, 2]["answers"] == 4
    assert cells["prose", 0, 2]["tokens"] == 4 * 8
    greedy = cells["all", 0, 2]
    assert greedy["alpha"] == 1, "these two agree where greedy"
    assert greedy["accepted"] == greedy["drafted"] == sum(greedy["accepted_at"])
    assert result["costs"]["target"] == list(COSTS.target)
    assert (greedy["v"], greedy["c"]) == (1.4, 0.1)


def test_a_text_at_temperature_0_does_not_depend_on_how_it_was_drafted(bench: Bench, tmp_path: Path) -> None:
    trace = tmp_path / "bench.trace"
    assert bench("--trace", trace, "--json").code == 0
    texts: dict[tuple[str, int], set[str]] = {}
    label: dict[str, Any] = {}
    text = ""
    for record in map(json.loads, trace.read_text("utf-8").splitlines()):
        if record["type"] == "answer":
            label, text = record["label"], ""
        elif record["type"] == "round":
            text += "".join(str(each["token"]) + " " for each in record["emitted"])
        elif label["temperature"] == 0:
            texts.setdefault((label["prompt"], label["turn"]), set()).add(text)
    assert len(texts) == 3
    assert all(len(each) == 1 for each in texts.values())


def test_plain_and_drafted_answers_have_the_same_seed_and_turns_another(bench: Bench, tmp_path: Path) -> None:
    trace = tmp_path / "bench.trace"
    bench("--trace", trace, "--seed", 40)
    headers = [
        record for record in map(json.loads, trace.read_text("utf-8").splitlines()) if record["type"] == "answer"
    ]
    assert len(headers) == 18
    assert {(each["label"]["turn"], each["seed"]) for each in headers} == {(0, 40), (1, 41)}


def test_csv_has_a_row_for_each_cell(bench: Bench) -> None:
    rows = list(csv.DictReader(io.StringIO(bench("--csv").out)))
    assert len(rows) == 3 * 2 * 3
    assert {row["prompts"] for row in rows} == {"code", "prose", "all"}


def test_the_pictures_are_written_beside_the_table(bench: Bench, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    outcome = bench("--plot", tmp_path / "speed.svg")
    assert outcome.out.startswith("prompts")
    assert outcome.err == f"note: the pictures are in {tmp_path / 'speed.svg'}\n"
    assert (tmp_path / "speed.svg").read_bytes().startswith(b"<?xml")


def test_what_is_measured_goes_into_theory(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bench.json"
    path.write_text(bench("--json", "-n", 24).out, "utf-8")
    assert run(["theory", str(path), "-k", "4"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("temperature 0: α 1.00")
    assert "temperature 1: α 0." in shown


def test_a_draft_that_needs_no_model_is_measured_too(bench: Bench) -> None:
    result = bench("--json", draft="lookup").json
    assert (result["draft"], result["drafters"]) == (None, "lookup")
    assert {each["c"] for each in result["cells"]} <= {None, 0}


def test_a_time_limit_shows_what_there_is_and_what_is_missing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10_000, 10))

    def by_that_clock(*given: Any, **more: Any) -> Measurement:
        return measure(*given, **more, clock=lambda: float(next(now)))

    monkeypatch.setattr("specdec_cli.bench.benching.measure", by_that_clock)
    outcome = bench("--time-limit", 65)
    assert outcome.code == 0
    assert "missing  12 of 18 answers: after the 65 s of --time-limit (0: none)" in outcome.out


def stopped_after(count: int, error: BaseException) -> Callable[..., Run]:
    """Answers as ever, the warm-up and `count` of them, and then `error`."""
    left = iter(range(count + 1))

    def answer(*given: Any, **more: Any) -> Run:
        if next(left, None) is None:
            raise error
        return answered(*given, **more)

    return answer


def test_ctrl_c_shows_what_there_is(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specdec_cli.bench.benching.run", stopped_after(4, KeyboardInterrupt()))
    outcome = bench("--json")
    assert outcome.code == 130
    assert outcome.json["answers"] == {"planned": 18, "done": 4, "stopped": "interrupted", "error": None}


def test_ctrl_c_before_anything_could_be_compared_shows_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specdec_cli.bench.benching.run", stopped_after(1, KeyboardInterrupt()))
    assert bench() == Outcome(130, "", "")


def test_an_error_in_the_middle_loses_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specdec_cli.bench.benching.run", stopped_after(4, ModelError("it broke")))
    outcome = bench()
    assert outcome.code == 3
    assert "missing  14 of 18 answers: it could not go on" in outcome.out
    assert outcome.err == "error: it broke\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--json", "--csv"], "--json and --csv both want stdout"),
        (["-k", "0"], "--draft-tokens 0 is plain decoding alone"),
        (["-k", "1,,2"], "--draft-tokens 1,,2 has a gap"),
        (["-k", "1,x"], "--draft-tokens x is not a whole number"),
        (["-k", "600"], "--draft-tokens 600 is not in 0..128"),
        (["--temperature", "0,-1"], "--temperature -1 is not in 0..100"),
        (["--repeat", "0"], "--repeat 0 is not in 1..1000"),
        (["--plot", "speed.pdf"], "--plot speed.pdf has no ending that is known"),
        (["--prompts", "none.jsonl"], "prompt file none.jsonl cannot be read: No such file or directory"),
        (["-d", "none"], "there is no draft to compare with plain decoding"),
        (["--ctx-size", "4"], "the prompt has "),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_2(bench: Bench, arguments: list[str], complaint: str) -> None:
    outcome = bench(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert complaint in outcome.err.splitlines()[0]


def test_messages_are_answered_and_cannot_be_continued_raw(bench: Bench, prompts: Path) -> None:
    prompts.write_text('{"messages": [{"role": "user", "content": "hi"}]}\n', "utf-8")
    assert bench("--json").json["cells"][0]["prompts"] == "prompts"
    outcome = bench("--raw")
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: prompt file {prompts}, line 1: messages need a chat template")


def test_the_pair_is_an_argument_like_that_of_models(capsys: pytest.CaptureFixture[str], attention_pair: Pair) -> None:
    assert run(["bench", "mine", "-m", str(attention_pair.target)]) == 2
    assert capsys.readouterr().err.splitlines()[0] == "error: PAIR and --target both name the big model"


def test_a_terminal_sees_progress_and_then_only_the_report(attention_pair: Pair, prompts: Path) -> None:
    models = ("-m", attention_pair.target, "-d", attention_pair.draft)
    with PtyProcess(["bench", *models, "--prompts", prompts, *SHORT], columns=80, rows=60) as screen:
        assert screen.wait() == 0
        assert b"of 18" in screen.received
        lines = screen.lines()
        assert lines[0] == "code, temperature 0"
        assert max(map(len, lines)) <= 80
        assert screen.shows_cursor
