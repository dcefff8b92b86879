"""`specdec generate` on toy models, as a user meets it: in pipes, in files, as JSON and in a terminal."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from specdec_cli import loading
from specdec_cli.cli import run
from specdec_cli.placing_keys import PLACING_KEYS
from tests.pty_process import PtyProcess, wrapped
from tests.toy_gguf import EOS, FIRST_EXTRA, memoryless_toy

LINES = [f"line {number}: [/INST] list[int] [bold] :smile: [/]" + " word" * number + "\n" for number in range(40)]
LOOP = "tick "
ONE_THREAD = ("--threads", "1")
"""Toys are too small to share, and tests run beside each other."""


def chain(pieces: Sequence[str], path: Path, *, wrong_every: int = 0) -> Path:
    """A toy whose answer to anything is `pieces`, one token each, and then the end; or one that is often wrong."""
    table = {FIRST_EXTRA + at: {FIRST_EXTRA + at + 1: 1.0} for at in range(len(pieces) - 1)}
    table[FIRST_EXTRA + len(pieces) - 1] = {EOS: 1.0}
    if wrong_every:
        table = {token: {FIRST_EXTRA: 1.0} if token % wrong_every == 0 else row for token, row in table.items()}
    toy = memoryless_toy(table, {FIRST_EXTRA: 1.0}, extra=[piece.encode() for piece in pieces])
    return toy.write(path)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says LINES and ends."""
    return chain(LINES, tmp_path_factory.mktemp("[bold]") / "target.gguf")


@pytest.fixture(scope="module")
def draft(target: Path) -> Path:
    """Guesses LINES right two times out of three."""
    return chain(LINES, target.parent / "draft.gguf", wrong_every=3)


@pytest.fixture(scope="module")
def endless(target: Path) -> Path:
    """Says LOOP for longer than any test waits."""
    toy = memoryless_toy({}, {FIRST_EXTRA: 1.0}, extra=[LOOP.encode()]).having({"llama.context_length": 2**17})
    return toy.write(target.parent / "endless.gguf")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is not strict JSON")

        assert self.out.count("\n") == 1, "one object on one line"
        return json.loads(self.out, parse_constant=refuse)


Generate = Callable[..., Outcome]


@pytest.fixture
def generate(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Generate:
    """Run `specdec generate` in this process, with no terminal on any stream; without -k it drafts 4 tokens a round."""

    def start(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        length = () if "-k" in arguments else ("-k", 4)
        code = run(["generate", *ONE_THREAD, *map(str, (*length, *arguments))])
        captured = capsysbinary.readouterr()
        return Outcome(code, captured.out.decode(), captured.err.decode())

    return start


def test_a_pipe_gets_exactly_the_generated_bytes_and_nothing_on_stderr(
    generate: Generate, target: Path, draft: Path
) -> None:
    outcome = generate("prompt", "-m", target, "-d", draft)
    assert outcome == Outcome(0, "".join(LINES), "")


@pytest.mark.parametrize("kind", ["none", "lookup"])
def test_the_text_is_the_same_without_a_draft_model(kind: str, generate: Generate, target: Path) -> None:
    assert generate("prompt", "-m", target, "-d", kind).out == "".join(LINES)


def test_stats_asked_for_in_a_pipe_are_one_plain_line_on_stderr(generate: Generate, target: Path, draft: Path) -> None:
    outcome = generate("prompt", "-m", target, "-d", draft, "--stats", "-s", 5, "--color-tokens")
    assert outcome.out == "".join(LINES)
    assert outcome.err.count("\n") == 1
    assert "target target.gguf on CPU · draft draft.gguf on CPU · seed 5" in outcome.err
    assert "\x1b" not in outcome.err


def test_stats_win_over_quiet_only_when_asked_for(generate: Generate, target: Path) -> None:
    assert generate("prompt", "-m", target, "-q").err == ""
    assert "seed" in generate("prompt", "-m", target, "-q", "--stats").err


def test_json_holds_the_text_the_reason_and_all_that_repeats_the_run(
    generate: Generate, target: Path, draft: Path
) -> None:
    arguments = ("prompt", "-m", target, "-d", draft, "-k", 3, "-s", 9, "--system", "s", "--stop", "never", "--json")
    answer = generate(*arguments).json
    assert list(answer) == (
        "text finish_reason prompt_tokens tokens seed target draft settings stats".split()  # noqa: SIM905
    )
    assert (answer["text"], answer["finish_reason"], answer["seed"]) == ("".join(LINES), "stop", 9)
    assert answer["target"]["path"] == str(target)
    assert (answer["draft"]["kind"], answer["draft"]["path"]) == ("model", str(draft))
    settings = answer["settings"]
    assert settings.items() >= {"draft_tokens": 3, "system": "s", "raw": False, "stop": ["never"]}.items()
    assert settings.items() >= {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}.items()
    assert settings.keys() >= {"max_tokens", "ctx_size", "threads", "draft_threads", "batch_size", "gpu_layers"}
    assert settings.keys() >= {"draft_gpu_layers", "flash_attn", "cache_type_k", "cache_type_v", *PLACING_KEYS}
    assert set(answer["stats"]["seconds"]) == {"load", "prompt", "draft", "verify", "sample", "total"}


@pytest.mark.parametrize("max_tokens", [1, 2, 7, -1])
@pytest.mark.parametrize("draft_tokens", [1, 8])
def test_the_counts_agree_with_each_other_and_with_the_text(
    max_tokens: int, draft_tokens: int, generate: Generate, target: Path, draft: Path
) -> None:
    answer = generate("p", "-m", target, "-d", draft, "-n", max_tokens, "-k", draft_tokens, "--json").json
    stats = answer["stats"]
    said = len(LINES) if max_tokens < 0 else max_tokens
    assert answer["text"] == "".join(LINES[:said])
    assert answer["finish_reason"] == ("stop" if max_tokens < 0 else "length")
    assert answer["tokens"] == said
    assert answer["tokens"] == stats["accepted"] + stats["corrections"] + stats["bonus"]
    assert 0 <= stats["accepted"] <= stats["examined"] <= stats["drafted"]
    assert (sum(stats["drafted_at"]), sum(stats["accepted_at"])) == (stats["drafted"], stats["accepted"])
    if stats["drafted"]:
        assert stats["alpha"] == stats["accepted"] / stats["examined"]
        assert stats["acceptance_rate"] == stats["accepted"] / stats["drafted"]
    assert stats["tokens_per_round"] == answer["tokens"] / stats["rounds"]
    assert sum(stats["seconds"].values()) - stats["seconds"]["total"] <= stats["seconds"]["total"]


def test_what_was_never_drafted_is_null_and_there_is_no_draft(generate: Generate, target: Path) -> None:
    answer = generate("prompt", "-m", target, "-d", "none", "--json").json
    assert answer["draft"] is None
    rates = ("alpha", "expected_alpha", "acceptance_rate")
    assert [answer["stats"][name] for name in rates] == [None] * 3
    assert answer["stats"]["drafted_at"] == []


def test_a_draft_equal_to_the_target_is_always_accepted(generate: Generate, target: Path) -> None:
    stats = generate("prompt", "-m", target, "-d", target, "--json").json["stats"]
    assert stats["alpha"] == stats["expected_alpha"] == 1


def test_seeds_repeat_a_run_and_an_unset_one_is_reported(generate: Generate, attention_pair: Any) -> None:
    def answer(*seed: object) -> Any:
        pair = ("-m", attention_pair.target, "-d", attention_pair.draft)
        return generate("prompt", *pair, "-n", 20, "--temperature", 2, *seed, "--json").json

    zero, one, free, other = answer("-s", 0), answer("-s", 1), answer(), answer("-s", -1)
    assert answer("-s", 0)["text"] == zero["text"] != one["text"]
    assert free["seed"] != other["seed"]
    assert answer("-s", free["seed"])["text"] == free["text"]


def test_piped_material_goes_before_the_question(generate: Generate, target: Path) -> None:
    apart = generate("question", "-m", target, "--json", stdin=b"log\r\n").json
    whole = generate("log\n\nquestion", "-m", target, "--json").json
    assert (
        apart["prompt_tokens"]
        == whole["prompt_tokens"]
        > generate("question", "-m", target, "--json").json["prompt_tokens"]
    )


@pytest.mark.parametrize("stdin", [b"", b"\n", b"\n\n", b" \t\n"])
def test_a_blank_prompt_is_a_usage_error(stdin: bytes, generate: Generate, target: Path) -> None:
    outcome = generate("-m", target, stdin=stdin)
    assert outcome == Outcome(
        2, "", "error: the prompt is empty\nhint: --raw continues even from nothing, where the model can\n"
    )


def test_gpu_layers_without_a_gpu_are_one_notice(generate: Generate, target: Path) -> None:
    outcome = generate("prompt", "-m", target, "-d", "none", "--gpu-layers", 99, "--stats")
    if "on CPU" not in outcome.err:
        pytest.skip("there is a GPU here")
    assert outcome.code == 0
    assert outcome.err.startswith("note: no GPU that llama.cpp can use: --gpu-layers has no effect\n")
    assert outcome.err.count("\n") == 2


def test_ctrl_c_while_loading_is_exit_130_without_output(
    generate: Generate, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loading, "read_vocabulary", interrupt)
    assert generate("prompt", "-m", target, "--json") == Outcome(130, "", "")


def test_ctrl_c_while_waiting_for_input_is_exit_130_without_output() -> None:
    script = (
        "import os, signal, sys, threading\n"
        "from specdec_cli import cli, prompt\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "sys.exit(cli.run(['generate', '-f', '-']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.wait(60) == 130
        assert process.stdout
        assert process.stderr
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def test_a_reader_that_leaves_ends_the_run_quietly_and_its_first_bytes_come_at_once(endless: Path) -> None:
    command = [sys.executable, "-m", "specdec_cli", "generate", "prompt", "-m", str(endless), *ONE_THREAD, "-c", "0"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.read(5) == LOOP.encode()
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(("columns", "rows"), [(80, 10), (40, 10)])
def test_a_terminal_shows_the_answer_once_and_the_summary_after_it(
    columns: int, rows: int, target: Path, draft: Path
) -> None:
    arguments = ["generate", "prompt", "-m", target, "-d", draft, *ONE_THREAD, "-k", "4", "-s", "1"]
    with PtyProcess(arguments, columns=columns, rows=rows) as process:
        assert process.wait() == 0
        expected = wrapped("".join(LINES), columns)
        assert process.lines()[: len(expected)] == expected
        summary = "".join(process.lines()[len(expected) :])
        assert re.match(r"\d+ tokens · ", summary)
        assert re.search(r"seed ?1(note: |$)", summary), "a line may end anywhere, and advice may follow"
        assert b"tok/round" in process.received, "the live line was shown"
        assert process.shows_cursor


def test_ctrl_c_in_an_answer_keeps_its_text_and_a_clean_screen(endless: Path) -> None:
    with PtyProcess(["generate", "prompt", "-m", endless, *ONE_THREAD, "-c", "0"], rows=10) as process:
        process.wait_for(LOOP.strip(), times=300)
        process.press(b"\x03")
        assert process.wait() == 130
        text, tokens, _ = re.split(r"\n(\d+) tokens, interrupted", "\n".join(process.lines()))
        assert "^C" in text
        assert re.sub(r"\s|\^C", "", text) == LOOP.strip() * int(tokens)
        assert process.shows_cursor


def test_ctrl_c_with_json_gives_the_object_with_its_reason(endless: Path, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    arguments = ["generate", "prompt", "-m", endless, *ONE_THREAD, "-c", "0", "--json"]
    with path.open("wb") as file, PtyProcess(arguments, stdout=file) as process:
        process.wait_for("tok/s")
        process.press(b"\x03")
        assert process.wait() == 130
    answer = json.loads(path.read_text())
    assert answer["finish_reason"] == "interrupted"
    assert answer["text"] == LOOP * answer["tokens"]


def test_a_file_gets_no_escapes_while_the_terminal_shows_the_statistics(target: Path, tmp_path: Path) -> None:
    arguments = ["generate", "prompt", "-m", target, *ONE_THREAD, "--color-tokens"]
    with (tmp_path / "answer").open("wb") as answer, PtyProcess(arguments, stdout=answer) as process:
        assert process.wait() == 0
        lines = process.lines()
    assert (tmp_path / "answer").read_text() == "".join(LINES)
    assert re.match(r"\d+ tokens", lines[0]), "nothing is left of the live line"


@pytest.mark.parametrize(
    ("environment", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_need_a_terminal_that_wants_them(
    environment: dict[str, str], colored: bool, target: Path, draft: Path
) -> None:
    arguments = ["generate", "p", "-m", target, "-d", draft, *ONE_THREAD, "-k", "4", "--color-tokens", "-q"]
    with PtyProcess(arguments, environment={"NO_COLOR": "", **environment}) as process:
        assert process.wait() == 0
        assert process.lines() == wrapped("".join(LINES), 80)
        assert (b"\x1b[32m" in process.received) is colored
        assert (b"\x1b" in process.received) is colored


def test_the_command_line_knows_every_word_that_the_engine_knows() -> None:
    from specdec_cli.commands import options
    from specdec_cli.llama import context_options

    assert set(options.CACHE_TYPES) == set(context_options.CACHE_TYPES)
    assert set(context_options.FLASH_ATTENTION) == {"auto", "on", "off"}
