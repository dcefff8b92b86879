"""`specdec generate --suffix`: from an editor's pipe to the text that is missing."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specdec_cli.cli import run
from specdec_cli.session import Session
from tests.commands.test_generate import Outcome
from tests.llama.test_infill import KEYS
from tests.toy_gguf import EOS, FIRST_EXTRA, memoryless_toy

Fill = Callable[..., Outcome]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fills in `x = 1` and ends."""
    middle, said = FIRST_EXTRA + 2, FIRST_EXTRA + 3
    table = {middle: {said: 1.0}, said: {EOS: 1.0}}
    toy = memoryless_toy(table, {1: 1.0}, extra=[b"[pre]", b"[suf]", b"[mid]", b"x = 1"]).having(KEYS)
    return toy.write(tmp_path_factory.mktemp("toys") / "coder.gguf")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What the target was asked to fill in between."""
    seen: list[tuple[str, str]] = []
    fill = Session.prompt_to_fill

    def noted(session: Session, before: str, after: str) -> list[int]:
        seen.append((before, after))
        return fill(session, before, after)

    monkeypatch.setattr(Session, "prompt_to_fill", noted)
    return seen


@pytest.fixture
def fill(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, target: Path, tmp_path: Path
) -> Fill:
    """Run `specdec generate` on the target in a folder of its own, with `stdin` piped in."""

    def start(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        given = ["generate", "-m", target, "--threads", 1, "--temperature", 0, "-k", 2, *arguments]
        code = run([str(each) for each in given])
        out, err = capsysbinary.readouterr()
        return Outcome(code, out.decode(), err.decode())

    monkeypatch.chdir(tmp_path)
    return start


def test_a_pipe_gets_the_middle_and_nothing_else(fill: Fill, asked: list[tuple[str, str]]) -> None:
    outcome = fill("--suffix", "\nreturn x\n", stdin=b"def f():\n    ")
    assert (outcome.code, outcome.out, outcome.err) == (0, "x = 1", "")
    assert asked == [("def f():\n    ", "\nreturn x\n")]


def test_every_newline_before_the_gap_counts(fill: Fill, asked: list[tuple[str, str]]) -> None:
    fill("--suffix", "b", stdin=b"a\r\n\r\n")
    Path("before.py").write_bytes(b"a\n")
    fill("--suffix", "b", "-f", "before.py")
    assert asked == [("a\n\n", "b"), ("a\n", "b")]


def test_the_suffix_is_a_file_if_there_is_one_of_that_name(fill: Fill, asked: list[tuple[str, str]]) -> None:
    Path("after.py").write_bytes(b"\xef\xbb\xbfprint()\r\n")
    for suffix in ("after.py", "missing.py", "x" * 1000, "a\0b"):
        assert fill("--suffix", suffix, "code").code == 0
    assert [after for _, after in asked] == ["print()\n", "missing.py", "x" * 1000, "a\0b"]


def test_nothing_need_stand_before_the_gap(fill: Fill, asked: list[tuple[str, str]]) -> None:
    assert fill("--suffix", "b", "").code == 0
    assert asked == [("", "b")]


def test_json_says_that_no_template_was_used(fill: Fill) -> None:
    said = json.loads(fill("--suffix", "b", "--json", "a").out)
    assert (said["text"], said["settings"]["raw"]) == ("x = 1", True)


def test_a_system_message_has_no_place(fill: Fill) -> None:
    outcome = fill("--suffix", "b", "--system", "s", "a")
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, "error: --suffix has no place for a --system message")
