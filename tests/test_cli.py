"""Errors become exits in one place: one line, one hint, one code."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from specdec_cli import cli
from specdec_cli.cli import run
from specdec_cli.errors import ModelError, SpecdecError, UsageError

Capture = pytest.CaptureFixture[str]

OUT_OF_RANGE = [
    (["--draft-tokens", "600"], "--draft-tokens 600 is not in 0..128"),
    (["-k", "-1"], "--draft-tokens -1 is not in 0..128"),
    (["--max-tokens", "-2"], "--max-tokens -2 is not in -1..2147483647"),
    (["--max-tokens", "0"], "--max-tokens 0 would say nothing"),
    (["--max-tokens", "1.5"], "--max-tokens 1.5 is not a whole number"),
    (["--top-k", "-1"], "--top-k -1 is not in 0..2147483647"),
    (["--top-k", "many"], "--top-k many is not a whole number"),
    (["--top-p", "1.5"], "--top-p 1.5 is not in 0..1"),
    (["--top-p", "-0.1"], "--top-p -0.1 is not in 0..1"),
    (["--min-p", "nan"], "--min-p nan is not in 0..1"),
    (["--temperature", "-1"], "--temperature -1 is not in 0..100"),
    (["--temperature", "nan"], "--temperature nan is not in 0..100"),
    (["--temperature", "inf"], "--temperature inf is not in 0..100"),
    (["--temperature", "warm"], "--temperature warm is not a number"),
    (["--seed", "-2"], "--seed -2 is not in -1..9007199254740991"),
    (["--seed", str(2**53)], f"--seed {2**53} is not in -1..9007199254740991"),
    (["--ctx-size", "-1"], "--ctx-size -1 is not in 0..16777216"),
    (["--threads", "0"], "--threads 0 is not in 1..512"),
    (["--draft-threads", "513"], "--draft-threads 513 is not in 1..512"),
    (["--batch-size", "0"], "--batch-size 0 is not in 1..65536"),
    (["--gpu-layers", "-2"], "--gpu-layers -2 is not in -1..2147483647"),
    (["--draft-gpu-layers", "all"], "--draft-gpu-layers all is not a whole number"),
    (["--flash-attn", "maybe"], "--flash-attn maybe is not one of auto, on, off"),
    (["--cache-type-k", "q9"], "--cache-type-k q9 is not one of f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl"),
    (["--cache-type-v", ""], "--cache-type-v  is not one of f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl"),
    (["--stop", ""], "--stop needs some text"),
    (["--prompt", "twice"], "PROMPT and --prompt are the same thing"),
    (["--raw", "--system", "s"], "--raw has no place for a --system message"),
    (["--pair", "smollm2", "-m", "x.gguf"], "--pair and --target both name the big model"),
    (["--pair", "[bold]"], 'no pair named "[bold]" in models.toml'),
    (["--nonsense"], "no such option: --nonsense"),
    (["more", "words"], "got unexpected extra argument"),
    (["--stop"], "option '--stop' requires an argument"),
    (["-f", "/no/such/file"], "prompt file /no/such/file cannot be read: No such file or directory"),
]


def failing(error: Exception, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run a command line whose command raises `error`."""

    def app(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)
    return run(list(arguments))


@pytest.mark.parametrize(("arguments", "message"), OUT_OF_RANGE)
def test_a_usage_error_is_one_line_and_a_hint_and_exit_2(
    arguments: list[str], message: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert run(["generate", "PROMPT", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith(f"error: {message}")
    assert second.startswith("hint: ")
    assert len(second) > len("hint: ")


def test_an_unknown_command_is_a_usage_error(capsys: Capture) -> None:
    assert run(["sing"]) == 2
    assert capsys.readouterr().err == "error: no such command 'sing'\nhint: specdec generate --help\n"


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_usage_error_points_to_the_help_of_its_command(command: str, capsys: Capture) -> None:
    assert run([command, "--nonsense"]) == 2
    assert capsys.readouterr().err.endswith(f"hint: specdec {command} --help\n")


def test_help_without_arguments_is_shown_with_the_exit_code_of_a_usage_error(capsys: Capture) -> None:
    assert run([]) == 2
    out, err = capsys.readouterr()
    assert "generate" in out
    assert err == ""


@pytest.mark.parametrize("arguments", [["--version"], ["generate", "--version"]])
def test_the_version_is_shown_wherever_it_is_asked_for(arguments: list[str], capsys: Capture) -> None:
    assert run(arguments) == 0
    assert capsys.readouterr().out.startswith("specdec 0.")


def test_the_help_groups_every_option_of_the_issue(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["generate", "--help"]) == 0
    text = capsys.readouterr().out
    options = (
        "--prompt --file --pair --target --draft --system --raw --max-tokens --ctx-size --draft-tokens --temperature "
        "--top-k --top-p --min-p --seed --stop --threads --draft-threads --batch-size --gpu-layers --draft-gpu-layers "
        "--flash-attn --cache-type-k --cache-type-v --json --stats --no-stats --quiet --verbose --debug --version "
        "--color-tokens --config"
    )
    assert [option for option in options.split() if f" {option} " not in text] == []
    assert all(panel in text for panel in ("Prompt and length", "Models", "Sampling", "Speed and memory", "Output"))
    assert "| specdec generate" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_exit_codes_are_documented_in_the_help(capsys: Capture) -> None:
    assert run(["--help"]) == 0
    assert "130" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code"), [(UsageError("message"), 2), (ModelError("message"), 3), (SpecdecError("message"), 1)]
)
def test_each_kind_of_failure_has_its_exit_code(
    error: SpecdecError, code: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failing(error, monkeypatch) == code
    assert capsys.readouterr().err.startswith("error: message\n")


def test_a_program_error_is_one_line_that_holds_none_of_its_message(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failing(ValueError("the user's secret"), monkeypatch) == 1
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith("error: unexpected ValueError at test_cli.py:")
    assert second == "hint: this is a fault of specdec; please report it, with what --debug shows"


@pytest.mark.parametrize("error", [ValueError("the user's secret"), UsageError("message", hint="hint")])
def test_debug_shows_where_it_happened_without_the_users_words(
    error: Exception, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(error, monkeypatch, "--debug")
    err = capsys.readouterr().err
    assert "raise error" in err
    assert "secret" not in err


def test_ctrl_c_anywhere_is_exit_130_without_a_word(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failing(KeyboardInterrupt(), monkeypatch) == 130  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""


def test_a_library_that_does_not_import_is_told_with_the_way_out() -> None:
    script = (
        "import sys; sys.modules['llama_cpp'] = None\n"
        "from specdec_cli.cli import run; sys.exit(run(['generate', 'hi', '-m', sys.executable]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stdout) == (3, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("error: llama-cpp-python does not load: ")
    assert "pip install" in second


def test_a_missing_library_that_errors_themselves_are_shown_with_is_told_too() -> None:
    script = (
        "import sys; sys.modules['numpy'] = None\nfrom specdec_cli.cli import run; sys.exit(run(['generate', 'hi']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("error: numpy does not import: ")
    assert second.startswith("hint: install specdec again")


@pytest.mark.parametrize("wanted", ["--help", "--version", "generate --help"])
def test_help_into_a_pipe_that_nobody_reads_ends_quietly(wanted: str) -> None:
    command = f'(sleep 0.6; "{sys.executable}" -m specdec_cli {wanted}; echo $? >&2) | true'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == "0\n"


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_missing_or_broken_streams_change_no_exit_code_and_cause_no_traceback(redirection: str) -> None:
    command = f'"{sys.executable}" -m specdec_cli generate -n 0 prompt {redirection}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
