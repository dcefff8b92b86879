"""`specdec table` on toy models: tables from texts and from answers, merged, extended and shown."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from specdec_cli import table_learning
from specdec_cli.cli import run
from specdec_cli.core.logprobs import Logprob, TokenLogprobs
from specdec_cli.core.ngram_counts import count, joined
from specdec_cli.generation import Generation, Request
from specdec_cli.ngram_file import read_ngrams
from specdec_cli.session import Session
from specdec_cli.status import StatusLine
from specdec_cli.table_learning import LEAST, observed
from tests.commands.test_generate import Outcome, chain
from tests.toy_gguf import EOS, FIRST_EXTRA, memoryless_toy

WORDS = ["one ", "two ", "three ", "four "]
Table = Callable[..., Outcome]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says WORDS and ends."""
    return chain(WORDS, tmp_path_factory.mktemp("toys") / "target.gguf")


@pytest.fixture
def table(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Table:
    """Run `specdec table` in a folder of its own, with no terminal on any stream."""

    def start(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(["table", *map(str, arguments)])
        out, err = capsysbinary.readouterr()
        return Outcome(code, out.decode(), err.decode())

    monkeypatch.chdir(tmp_path)
    return start


def build(table: Table, target: Path, *more: object, stdin: bytes = b"one two three four one two") -> Outcome:
    return table("build", "-m", target, "--threads", 1, "-o", "t.ngrams", *more, stdin=stdin)


def test_a_table_of_a_text_knows_what_follows_what(table: Table, target: Path) -> None:
    outcome = build(table, target, "-")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("note: t.ngrams: ")
    known, _ = read_ngrams(Path("t.ngrams"))
    assert int(known.logits(list(b"tw")).argmax()) == ord("o")


def test_texts_are_files_or_standard_input_and_all_of_them_count(table: Table, target: Path) -> None:
    Path("text").write_text("one two", "utf-8")
    build(table, target, "text", "-", stdin=b"one two")
    known, _ = read_ngrams(Path("t.ngrams"))
    build(table, target, "text", "text")
    assert known.tokens == read_ngrams(Path("t.ngrams"))[0].tokens > 0


def test_a_long_text_is_counted_in_pieces(table: Table, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(table, target, "-")
    whole, _ = read_ngrams(Path("t.ngrams"))
    monkeypatch.setattr(table_learning, "CHUNK", 3)
    build(table, target, "-")
    pieces, _ = read_ngrams(Path("t.ngrams"))
    assert [level.counts.tolist() for level in pieces.levels] == [level.counts.tolist() for level in whole.levels]


def test_the_answers_of_the_target_are_learned_and_then_guessed(
    table: Table, target: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    outcome = build(table, target, "--from-target", "-", stdin=b"hello\n\nagain\n")
    assert outcome.code == 0
    known, _ = read_ngrams(Path("t.ngrams"))
    assert known.tokens == pytest.approx(2 * len(WORDS))
    arguments = ["generate", "-m", str(target), "-d", "lookup,table:t.ngrams", "-k", "3", "--json", "--temperature"]
    assert run([*arguments, "0", "--threads", "1", "hello"]) == 0
    said = json.loads(capsysbinary.readouterr().out)
    assert (said["text"], said["stats"]["drafters"]["table"]["accepted"]) == ("".join(WORDS), len(WORDS) - 1)


def test_extending_adds_and_merging_adds_up(table: Table, target: Path) -> None:
    build(table, target, "-")
    once, _ = read_ngrams(Path("t.ngrams"))
    build(table, target, "--extend", "-")
    assert read_ngrams(Path("t.ngrams"))[0].tokens == 2 * once.tokens
    assert table("merge", "t.ngrams", "t.ngrams", "-o", "sum.ngrams").code == 0
    assert read_ngrams(Path("sum.ngrams"))[0].tokens == 4 * once.tokens


def test_show_says_what_a_table_holds(table: Table, target: Path) -> None:
    build(table, target, "-", "--order", 2)
    shown = table("show", "t.ngrams")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("t.ngrams: ")
    assert "n-grams of up to 2 tokens" in shown.out


@pytest.mark.parametrize("where", ["prompt_from_messages", "generate"])
def test_ctrl_c_between_answers_keeps_them_too(
    table: Table, target: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    real = getattr(Session, where)

    def pressed(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(Session, where, pressed)
    assert build(table, target, "--from-target", "-", stdin=b"a\nb\nc\nd\n").code == 130
    assert read_ngrams(Path("t.ngrams"))[0].tokens == pytest.approx(2 * len(WORDS))


def test_it_says_how_many_answers_of_how_many_tokens_it_has(
    table: Table, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(StatusLine, "show_loading", lambda _, text: told.append(text))
    build(table, target, "--from-target", "-", stdin=b"a\nb\n")
    assert [each for each in told if each.startswith("answered")] == [
        "answered 1 of 2 prompts, 4 tokens",
        "answered 2 of 2 prompts, 8 tokens",
    ]


def test_ctrl_c_keeps_what_was_answered(table: Table, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = 0
    answer = Generation.__iter__

    def interrupted(generation: Generation) -> object:
        nonlocal answers
        answers += 1
        if answers > 2:
            generation.finish_reason = "interrupted"
            return iter(())
        return answer(generation)

    monkeypatch.setattr(Generation, "__iter__", interrupted)
    outcome = build(table, target, "--from-target", "-", stdin=b"a\nb\nc\nd\n")
    assert outcome.code == 130
    assert read_ngrams(Path("t.ngrams"))[0].tokens == pytest.approx(2 * len(WORDS))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["missing.txt"], "text missing.txt cannot be read: No such file or directory"),
        (["."], "text . cannot be read: Is a directory"),
        (["-", "--extend"], "table t.ngrams cannot be read: No such file or directory"),
        (["-", "-o", "no/t.ngrams"], "table no/t.ngrams cannot be written: No such file or directory"),
        (["-", "-o", "."], "table . cannot be written: Is a directory"),
        (["-", "-o", "pipe"], "table pipe cannot be written: it is a pipe or a device"),
        (["-", "-o", "circle"], "table circle cannot be written: Too many levels of symbolic links"),
        (["-", "-o", "precious"], "precious is there and is not a table of specdec, or is damaged"),
        (["precious", "-o", "precious"], "precious is there and is not a table of specdec, or is damaged"),
        (["-", "--order", "1"], "--order 1 is not in 2..8"),
        (["-", "--temperature", "1"], "--temperature is about answers"),
        (["-", "-n", "3"], "--max-tokens is about answers"),
        (["-", "-d", "none"], "--draft is about answers"),
    ],
)
def test_what_cannot_be_is_one_line(table: Table, target: Path, arguments: list[str], complaint: str) -> None:
    Path("precious").write_bytes(b"a letter")
    Path("circle").symlink_to("circle")
    os.mkfifo("pipe")
    outcome = build(table, target, *arguments)
    assert outcome.code == 2
    assert outcome.err.splitlines()[0] == f"error: {complaint}"
    assert (Path("precious").read_bytes(), Path("pipe").is_fifo()) == (b"a letter", True)


def test_a_merge_keeps_what_is_no_table_too(table: Table, target: Path) -> None:
    build(table, target, "-")
    Path("precious").write_bytes(b"a letter")
    assert table("merge", "t.ngrams", "-o", "precious").code == 2
    assert Path("precious").read_bytes() == b"a letter"


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_answered(table: Table, target: Path) -> None:
    assert build(table, target, "--from-target", "-", "-o", "no/t.ngrams", stdin=b"hello\n").code == 2
    assert build(table, Path("missing.gguf"), "-", "-o", "no/t.ngrams").err.startswith("error: table no/t.ngrams")


def test_tables_of_any_orders_are_extended_and_merged(table: Table, target: Path) -> None:
    for order in (2, 6, 3):
        assert build(table, target, "--order", order, *(["--extend"] if order != 2 else []), "-").code == 0
    build(table, target, "--order", 2, "-o", "two.ngrams", "-")
    for one, other in (("two.ngrams", "t.ngrams"), ("t.ngrams", "two.ngrams")):
        assert table("merge", one, other, "-o", "sum.ngrams").code == 0
        assert read_ngrams(Path("sum.ngrams"))[0].order == 6


def test_a_prompt_that_cannot_be_asked_is_left_out_by_its_number(table: Table, target: Path) -> None:
    outcome = build(table, target, "--from-target", "-", stdin=b"a\n" + b"x" * 3000 + b"\nb\n")
    assert outcome.code == 0
    assert "prompt 2 is left out: the prompt has" in outcome.err
    assert read_ngrams(Path("t.ngrams"))[0].tokens == pytest.approx(2 * len(WORDS))
    refused = build(table, target, "--from-target", "-", stdin=b"x" * 3000)
    assert (refused.code, refused.err.startswith("error: no prompt could be asked: the prompt has")) == (2, True)


def test_blank_texts_are_refused(table: Table, target: Path) -> None:
    outcome = build(table, target, "-", stdin=b" \n\n")
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, "error: there is nothing to learn from")


def test_a_table_of_another_vocabulary_is_refused_everywhere(table: Table, target: Path, tmp_path: Path) -> None:
    build(table, target, "-")
    other = chain(["uno ", "due "], tmp_path / "other.gguf")
    Path("theirs.ngrams").write_bytes(Path("t.ngrams").read_bytes())
    assert "is about another vocabulary" in build(table, other, "--extend", "-").err
    build(table, other, "-")
    merged = table("merge", "theirs.ngrams", "t.ngrams", "-o", "sum.ngrams")
    assert merged.err.splitlines()[0] == "error: tables theirs.ngrams and t.ngrams are about different vocabularies"
    code = run(["generate", "-m", str(other), "-d", "table:theirs.ngrams", "x"])
    assert code == 2


def test_what_could_have_been_said_counts_by_its_chance() -> None:
    halves = (Logprob(5, -0.7, -0.6931), Logprob(6, -0.7, -0.6931))
    answer = [TokenLogprobs(halves[0], halves), TokenLogprobs(Logprob(7, 0, 0.0), (Logprob(7, 0, 0.0),))]
    known = count(joined([observed([1, 2, 3], answer, 3)] * 3), 10)
    singles = dict(zip(known.levels[0].tokens.tolist(), known.levels[0].counts.tolist(), strict=True))
    assert singles == {2: 0, 3: 0, 5: 24, 6: 24, 7: 48}
    after = [float(each) for each in known.logits([2, 3])]
    assert after[5] == after[6] == max(after)


def test_what_was_hardly_possible_counts_nothing() -> None:
    best = (
        Logprob(5, -0.02, math.log(0.97)),
        Logprob(6, -4.0, math.log(LEAST + 0.001)),
        Logprob(7, -6.0, math.log(0.009)),
    )
    known = count(joined([observed([1, 2], [TokenLogprobs(best[2], best)], 2)] * 10), 10)
    singles = dict(zip(known.levels[0].tokens.tolist(), known.levels[0].counts.tolist(), strict=True))
    assert set(singles) == {2, 5, 6, 7}
    assert singles[7] == 0 < singles[6] < singles[5]


def test_each_answer_is_what_was_asked_for_with_noise_of_its_own(
    table: Table, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []
    generate = Session.generate

    def noted(session: Session, prompt: Sequence[int], request: Request) -> Generation:
        asked.append(request)
        return generate(session, prompt, request)

    monkeypatch.setattr(Session, "generate", noted)
    build(table, target, "--from-target", "--seed", 7, "-n", 3, "--temperature", 0.5, "-", stdin=b"a\nb\nc\n")
    assert [each.turn for each in asked] == [0, 1, 2]
    assert len({each.noise_seed for each in asked}) == 3
    assert {(each.seed, each.max_tokens, each.chain.temperature) for each in asked} == {(7, 3, 0.5)}


def test_what_answers_said_once_by_half_a_chance_or_less_is_left_out(table: Table, tmp_path: Path) -> None:
    first, rare = FIRST_EXTRA, FIRST_EXTRA + 1
    rows = {ord("]"): {first: math.log(0.7), rare: math.log(0.3)}, first: {EOS: 0.0}, rare: {EOS: 0.0}}
    toy = memoryless_toy(rows, {EOS: 0.0}, extra=[b"often ", b"rarely "]).write(tmp_path / "two.gguf")
    build(table, toy, "--from-target", "--temperature", 1, "-", stdin=b"a\n")
    assert behind_the_prompt() == [first]
    build(table, toy, "--from-target", "--temperature", 1, "-", stdin=b"a\n" * 3)
    assert behind_the_prompt() == [first, rare]


def behind_the_prompt() -> list[int]:
    """What the table has behind the end of a prompt."""
    _, pairs = read_ngrams(Path("t.ngrams"))[0].levels[:2]
    return sorted(set(pairs.tokens.tolist()) & {FIRST_EXTRA, FIRST_EXTRA + 1})


def test_a_text_is_read_as_a_prompt_is(table: Table, target: Path) -> None:
    tables = []
    for text in (b"\xef\xbb\xbfone\r\ntwo \xff", "one\ntwo \ufffd".encode()):
        assert build(table, target, "-", stdin=text).code == 0
        tables.append(Path("t.ngrams").read_bytes())
    assert tables[0] == tables[1]


def test_the_file_is_as_small_as_was_asked_for(table: Table, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"one two " * 9 + bytes(range(33, 127)) + bytes(range(126, 32, -1))
    build(table, target, "-", stdin=text)
    whole = Path("t.ngrams").stat().st_size
    monkeypatch.setattr("specdec_cli.commands.table.MEGABYTE", whole // 2 - 50)
    assert table("merge", "t.ngrams", "-o", "small.ngrams", "--max-size", 2).code == 0
    assert build(table, target, "--max-size", 2, "-", stdin=text).code == 0
    for path in (Path("t.ngrams"), Path("small.ngrams")):
        assert path.stat().st_size <= whole - 100
        assert int(read_ngrams(path)[0].logits(list(b"one tw")).argmax()) == ord("o")
