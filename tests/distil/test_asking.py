"""`specdec distil generate` and `evaluate` on toy models: a file that grows, is gone on from, and loses nothing."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from specdec_cli.cli import run
from specdec_cli.distil import asking
from specdec_cli.distil.answers import AnswerFile
from specdec_cli.distil.evaluating import TEMPERATURES, to_plan
from specdec_cli.distil.generating import LIKELY
from specdec_cli.distil.prompts import held_out_prompts
from specdec_cli.llama.gguf import read_vocabulary
from tests.commands.test_generate import Outcome
from tests.spoken import says
from tests.toy_gguf import EOS, attention_toy

WORDS = ["one ", "two ", "three "]
PROMPTS = "what?\nwho?\n\nwhy?\nwhere?\nwhen?\n"
Distil = Callable[..., Outcome]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says WORDS and ends."""
    return says(WORDS, tmp_path_factory.mktemp("toys") / "target.gguf")


@pytest.fixture
def distil(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Distil:
    """Run `specdec distil` in a folder of its own that holds prompts, with no terminal on any stream."""

    def start(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(["distil", *map(str, arguments)])
        out, err = capsysbinary.readouterr()
        return Outcome(code, out.decode(), err.decode())

    monkeypatch.chdir(tmp_path)
    Path("prompts").write_text(PROMPTS, "utf-8")
    return start


def generate(distil: Distil, target: Path, *more: object, stdin: bytes = b"") -> Outcome:
    return distil("generate", "-m", target, "--threads", 1, "-o", "t.answers", "--sequences", 2, *more, stdin=stdin)


def found(target: Path) -> AnswerFile:
    return AnswerFile(Path("t.answers"), read_vocabulary(target, "target").fingerprint)


def test_each_prompt_is_answered_and_the_file_holds_what_was_said(distil: Distil, target: Path) -> None:
    outcome = generate(distil, target, "prompts")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.endswith("note: t.answers: 5 answers, 20 tokens\n")
    for answer in found(target):
        assert len(answer.tokens) - answer.start == len(WORDS) + 1
        assert answer.tokens[-1] == EOS
        assert answer.likely.shape == answer.logprobs.shape == (4, LIKELY)


def test_a_later_run_asks_only_what_is_left(distil: Distil, target: Path) -> None:
    generate(distil, target, "prompts", "--tokens", 8)
    before = Path("t.answers").read_bytes()
    outcome = generate(distil, target, "prompts")
    assert Path("t.answers").read_bytes().startswith(before)
    assert sorted(each.number for each in found(target)) == [*range(5)]
    assert outcome.err.endswith("note: t.answers: 5 answers, 20 tokens\n")


def test_prompts_come_from_a_pipe_too_and_may_be_asked_more_than_once(distil: Distil, target: Path) -> None:
    assert generate(distil, target, "-", "--repeat", 3, stdin=b"what?\nwho?\n").code == 0
    assert sorted(each.number for each in found(target)) == [*range(6)]


def test_ctrl_c_leaves_whole_answers_and_says_how_to_go_on(
    distil: Distil, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, added = AnswerFile.add, []

    def interrupted(file: AnswerFile, answer: object) -> None:
        add(file, answer)  # type: ignore[arg-type]
        added.append(answer)
        if len(added) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AnswerFile, "add", interrupted)
        outcome = generate(distil, target, "prompts")
    assert outcome.code == 130
    assert "the same command goes on from there" in outcome.err
    assert len([*found(target)]) == 2
    assert generate(distil, target, "prompts").code == 0
    assert len([*found(target)]) == 5


def test_a_log_hears_now_and_then_how_far_it_is(distil: Distil, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "of 5 answers" not in generate(distil, target, "prompts").err
    Path("t.answers").unlink()
    monkeypatch.setattr("specdec_cli.distil.pulse.SECONDS_BETWEEN", 0.0)
    assert "note: 3 of 5 answers, 12 tokens, " in generate(distil, target, "prompts").err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["missing"], "error: text missing cannot be read: No such file or directory"),
        (["empty"], "error: there is nothing to ask"),
        (["prompts", "--sequences", 257], "error: --sequences 257 is not in 1..256"),
        (["prompts", "-n", 0], "error: --max-tokens 0 is not in 1.."),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    distil: Distil, target: Path, arguments: list[object], complaint: str
) -> None:
    Path("empty").write_text("\n \n", "utf-8")
    outcome = generate(distil, target, *arguments)
    assert outcome.code == 2
    assert outcome.err.splitlines()[0].startswith(complaint)
    assert not Path("t.answers").exists()


def test_without_files_the_prompts_of_the_package_are_asked(
    distil: Distil, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "training_prompts", lambda: ["one?", "two?", "three?"])
    assert generate(distil, target).code == 0
    assert len([*found(target)]) == 3


def test_an_evaluation_asks_each_kind_about_held_out_topics() -> None:
    plan = to_plan(each_kind=2, max_tokens=9, seed=3)
    asked = [each.prompt for each in plan.prompts]
    assert set(asked) <= {each.text for each in held_out_prompts()}
    assert {kind: sum(each.kind == kind for each in plan.prompts) for kind in plan.kinds} == dict.fromkeys(
        {each.kind for each in held_out_prompts()}, 2
    )
    assert plan.temperatures == TEMPERATURES


def test_evaluate_shows_what_the_bench_measures(distil: Distil, tmp_path: Path) -> None:
    big, small = attention_toy(3.0).write(tmp_path / "big.gguf"), attention_toy(2.0).write(tmp_path / "small.gguf")
    outcome = distil("evaluate", "-m", big, "-d", small, "--prompts", 1, "-n", 8, "--threads", 1)
    assert outcome.code == 0
    for word in ("Σmin", "stories", "code", "all", "0.8"):
        assert word in outcome.out


def test_other_prompts_or_settings_need_another_file(distil: Distil, target: Path) -> None:
    generate(distil, target, "prompts")
    before = Path("t.answers").read_bytes()
    for more in (["--seed", 4], ["--temperature", 0], ["-n", 7]):
        outcome = generate(distil, target, "prompts", *more)
        assert (outcome.code, outcome.err.splitlines()[-2]) == (
            2,
            "error: answers t.answers are to other prompts, or by other settings",
        )
    assert Path("t.answers").read_bytes() == before
    assert generate(distil, target, "prompts", "--repeat", 2).code == 0, "more of the same goes into the same file"
