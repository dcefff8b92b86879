"""`--trace FILE` and `specdec trace`, as a user meets them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.cli import run
from tests.commands.test_generate import Outcome
from tests.pty_process import PtyProcess
from tests.toy_gguf import memoryless_toy
from tests.traces.traced import read

Specdec = Callable[..., Outcome]


@pytest.fixture
def specdec(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Specdec:
    """Run the command line in this process, with no terminal on any stream."""

    def start(*arguments: object, stdin: str = "") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run([str(each) for each in arguments])
        captured = capsysbinary.readouterr()
        return Outcome(code, captured.out.decode(), captured.err.decode())

    return start


@pytest.fixture
def asked(attention_pair: Pair) -> tuple[object, ...]:
    """A pair and what holds for all answers here."""
    files = ("-m", attention_pair.target, "-d", attention_pair.draft)
    return (*files, "--threads", 1, "-n", 20, "-s", 5, "-k", 3, "--temperature", 1)


@pytest.fixture
def trace(specdec: Specdec, asked: tuple[object, ...], tmp_path: Path) -> Path:
    """The trace of an answer."""
    path = tmp_path / "[bold].trace"
    assert specdec("generate", "hi", *asked, "--trace", path).code == 0
    return path


def test_generate_says_the_same_and_leaves_a_trace(specdec: Specdec, asked: tuple[object, ...], tmp_path: Path) -> None:
    path = tmp_path / "answer.trace"
    outcome = specdec("generate", "hi", *asked, "--trace", path)
    assert outcome == specdec("generate", "hi", *asked)
    (answer,) = read(path).answers
    assert answer.end is not None
    assert answer.end.finish_reason == "length"
    assert answer.end.stats["seconds"]["total"] > 0
    assert (answer.header.seed, answer.header.draft_tokens, answer.header.rule) == (5, 3, "block")
    said = b"".join(each.token.data for round_ in answer.rounds for each in round_.emitted)
    assert said.decode("utf-8", "replace") == outcome.out


def test_chat_traces_all_of_its_answers(specdec: Specdec, asked: tuple[object, ...], tmp_path: Path) -> None:
    path = tmp_path / "chat.trace"
    said = "one\n/set seed 6\n/set rule coupled\ntwo\n/regen\n"
    outcome = specdec("chat", *asked, "--json", "--trace", path, stdin=said)
    answers, told = read(path).answers, [json.loads(line) for line in outcome.out.splitlines()]
    assert [answer.header.prompt_tokens for answer in answers] == [each["prompt_tokens"] for each in told]
    assert [(each.header.rule, each.header.seed) for each in answers] == [("block", 5)] + [("coupled", 6)] * 2
    assert all(answer.end for answer in answers)


def test_a_trace_cannot_be_written_over_another_file(
    specdec: Specdec, asked: tuple[object, ...], tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.write_text("mine")
    outcome = specdec("generate", "hi", *asked, "--trace", notes)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {notes} is there and is no trace\n")
    assert notes.read_text() == "mine"


def test_a_place_that_cannot_be_written_is_noticed_before_anything_loads(specdec: Specdec, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.touch()
    outcome = specdec("generate", "hi", "-m", broken, "--trace", tmp_path / "none" / "trace")
    assert outcome.code == 2
    assert "cannot write trace" in outcome.err


def test_a_model_that_does_not_load_leaves_an_old_trace_as_it_was(specdec: Specdec, trace: Path) -> None:
    before, broken = trace.read_bytes(), trace.with_name("broken.gguf")
    broken.touch()
    assert specdec("generate", "hi", "-m", broken, "--trace", trace).code == 3
    assert trace.read_bytes() == before


def test_show_has_a_block_for_each_round_and_can_show_one(specdec: Specdec, trace: Path) -> None:
    outcome = specdec("trace", "show", trace)
    (answer,) = read(trace).answers
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split(" · ")[0] for line in outcome.out.splitlines() if line.startswith("round ")] == [
        f"round {each.index}" for each in answer.rounds
    ]
    assert outcome.out.endswith("ended: length\n\n")
    one = specdec("trace", "show", trace, "--round", 1, "--answer", 1).out
    assert one in outcome.out.replace(outcome.out[outcome.out.index("round 0") : outcome.out.index("round 1")], "")


def test_summary_has_what_the_statistics_of_the_answer_have(specdec: Specdec, trace: Path) -> None:
    found = json.loads(specdec("trace", "summary", trace, "--json").out)
    end = read(trace).answers[0].end
    assert end is not None
    for name in ("rounds", "alpha", "drafters", "tokens_per_round"):
        assert found[name] == end.stats[name]
    assert [each["accepted"] for each in found["positions"]] == end.stats["accepted_at"]
    assert f"α {found['alpha']:.2f}" in specdec("trace", "summary", trace).out


@pytest.mark.parametrize("verb", ["show", "summary", "html"])
def test_what_cannot_be_read_is_one_line_and_exit_2(specdec: Specdec, tmp_path: Path, verb: str) -> None:
    notes = tmp_path / "notes"
    notes.write_text("mine")
    outcome = specdec("trace", verb, notes)
    assert (outcome.code, outcome.out) == (2, "")
    hint = "a trace is what specdec generate --trace FILE writes"
    assert outcome.err == f"error: {notes} is no trace: line 1: it is no JSON\nhint: {hint}\n"


def test_a_cut_trace_is_shown_with_a_note_that_quiet_drops(specdec: Specdec, trace: Path) -> None:
    trace.write_bytes(trace.read_bytes()[:-10])
    outcome = specdec("trace", "show", trace)
    assert outcome.code == 0
    assert outcome.err.startswith(f"note: the last line of {trace} is cut")
    assert specdec("trace", "show", trace, "-q") == Outcome(0, outcome.out, "")


def test_what_is_not_in_a_trace_is_exit_2(specdec: Specdec, trace: Path) -> None:
    assert specdec("trace", "show", trace, "--round", 99).code == 2
    assert specdec("trace", "summary", trace, "--answer", 2).code == 2


def test_html_writes_a_page_into_a_file_or_a_pipe(specdec: Specdec, trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert specdec("trace", "html", trace, "-o", page) == Outcome(0, "", "")
    assert page.read_text("utf-8") == specdec("trace", "html", trace).out
    assert page.read_text("utf-8").lower().startswith("<!doctype html>")


def test_a_page_takes_the_place_of_no_folder_and_not_of_its_own_trace(
    specdec: Specdec, trace: Path, tmp_path: Path
) -> None:
    before = trace.read_bytes()
    outcome = specdec("trace", "html", trace, "-o", trace)
    assert (outcome.code, trace.read_bytes()) == (2, before)
    assert "is the trace itself" in outcome.err
    assert "cannot write page" in specdec("trace", "html", trace, "-o", tmp_path).err
    assert "cannot write page" in specdec("trace", "html", trace, "-o", tmp_path / "none" / "page").err


def test_at_a_terminal_rounds_are_coloured_and_fit_the_window(trace: Path) -> None:
    with PtyProcess(["trace", "show", trace, "--round", 0], columns=90) as process:
        assert process.wait() == 0
        assert b"\x1b[3" in process.received
        assert any(line.startswith("round 0 ") for line in process.lines())


def test_an_interrupted_answer_is_traced_to_its_end(tmp_path: Path) -> None:
    endless = memoryless_toy({}, {97: 1.0}).having({"llama.context_length": 2**17}).write(tmp_path / "endless.gguf")
    path = tmp_path / "answer.trace"
    with PtyProcess(["generate", "hi", "-m", endless, "--threads", 1, "--trace", path]) as process:
        process.wait_for("aaaa")
        process.press(b"\x03")
        assert process.wait() == 130
    (answer,) = read(path).answers
    assert answer.end is not None
    assert answer.end.finish_reason == "interrupted"
