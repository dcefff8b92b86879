"""`specdec chat` on toy models, from a pipe: what it answers, keeps, refuses and says."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gguf
import pytest

from specdec_cli.catalog import Pair
from specdec_cli.cli import run
from tests.spoken import says
from tests.toy_gguf import EOS, FIRST_EXTRA, TEMPLATE, memoryless_toy

ONE_THREAD = ("--threads", "1")


@pytest.fixture(scope="module")
def greeter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says `hi [/INST] there` and ends."""
    return says(["hi ", "[/INST] ", "there"], tmp_path_factory.mktemp("[bold]") / "greeter.gguf")


@pytest.fixture(scope="module")
def thinker(greeter: Path) -> Path:
    """Thinks before it speaks."""
    return says(["<th", "ink>", "why </", "no </thi", "nk>\n", "\nsa", "id"], greeter.parent / "thinker.gguf")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Chat = Callable[..., Outcome]


@pytest.fixture
def chat(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Chat:
    """Run `specdec chat` in this process on the lines of `said`, with no terminal on any stream."""

    def start(said: str, *arguments: object) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
        code = run(["chat", *ONE_THREAD, "-k", "2", *map(str, arguments)])
        captured = capsysbinary.readouterr()
        return Outcome(code, captured.out.decode(), captured.err.decode())

    return start


@pytest.fixture
def talk(chat: Chat, attention_pair: Pair) -> Chat:
    """The same on models that remember their context, eight tokens an answer."""

    def start(said: str, *arguments: object) -> Outcome:
        pair = ("-m", attention_pair.target, "-d", attention_pair.draft)
        return chat(said, *pair, "-n", 8, "-s", 1, "--json", *arguments)

    return start


def texts(outcome: Outcome) -> list[str]:
    return [answer["text"] for answer in outcome.json]


def test_each_line_of_a_pipe_is_answered_on_clean_stdout(chat: Chat, greeter: Path) -> None:
    assert chat("one\n\n  \ntwo\r\n", "-m", greeter) == Outcome(0, "hi [/INST] there\n" * 2, "")


@pytest.mark.parametrize("said", ["", "\n", " \n\t\n"])
def test_nothing_said_is_nothing_answered_and_exit_0(said: str, chat: Chat, greeter: Path) -> None:
    assert chat(said, "-m", greeter) == Outcome(0, "", "")


def test_a_message_on_the_command_line_comes_first_and_is_never_a_command(chat: Chat, greeter: Path) -> None:
    assert chat("two\n", "/help", "-m", greeter) == Outcome(0, "hi [/INST] there\n" * 2, "")


def test_a_file_can_be_the_first_message_and_standard_input_one(talk: Chat, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a\r\nb\n")
    expected = talk("", "a\nb\n\nwhat?").json[0]
    assert talk("", "what?", "-f", file).json[0]["text"] == expected["text"]
    assert talk("a\nb\n", "what?", "-f", "-").json[0]["prompt_tokens"] == expected["prompt_tokens"]


def test_the_answer_depends_on_what_was_said_before(talk: Chat) -> None:
    whole = talk("a\nb\n").json
    assert whole[1]["prompt_tokens"] > talk("b\n").json[0]["prompt_tokens"]
    assert talk("b\n").json[0]["text"] != whole[1]["text"]


def test_reset_forgets_and_undo_takes_back_one(talk: Chat) -> None:
    alone = talk("b\n").json[0]["prompt_tokens"]
    assert [each["prompt_tokens"] for each in talk("a\n/reset\nb\n").json][1] == alone
    outcome = talk("a\n/undo\nb\n/undo\n/undo\n")
    assert [each["prompt_tokens"] for each in outcome.json][1] == alone
    assert outcome.err.splitlines()[:3] == [
        "note: taken back: a",
        "note: taken back: b",
        "error: there is nothing to take back",
    ]


def test_an_answer_made_again_has_the_same_question_and_other_noise(talk: Chat) -> None:
    first, again = talk("a\n/regen\n", "--temperature", 2).json
    assert first["prompt_tokens"] == again["prompt_tokens"]
    assert first["text"] != again["text"]


def test_the_system_message_can_be_set_and_dropped(talk: Chat) -> None:
    counts = [each["prompt_tokens"] for each in talk("a\n/reset\n/system be\na\n/reset\n/system none\na\n").json]
    assert counts[0] == counts[2] < counts[1]
    shown = talk("/system\n/system [bold]\n/system\n", "--system", "s").err
    assert shown == "note: the system message: s\nnote: the system message: [bold]\n"


def test_a_file_goes_before_the_next_message_and_alone_at_the_end(talk: Chat, tmp_path: Path) -> None:
    file = tmp_path / "a [b].txt"
    file.write_bytes(b"\xef\xbb\xbfline\r\n")
    expected = talk("line\n").json[0]
    outcome = talk(f"/read {file}\n")
    assert outcome.json[0]["text"] == expected["text"]
    assert outcome.err == f"note: {file} (1 line) goes before your next message\n"
    apart = talk(f"/read {file}\nwhat?\nwhat?\n").json
    assert apart[0]["prompt_tokens"] == expected["prompt_tokens"] + len("\n\nwhat?")


def test_settings_change_what_comes_next_and_a_wrong_one_changes_nothing(talk: Chat) -> None:
    lines = "/set max-tokens 3\na\n/set max-tokens 0\n/set max-tokens -2\na\n/set draft off\n/set max-tokens\na\n"
    outcome = talk(lines)
    assert [each["tokens"] for each in outcome.json] == [3, 3, 3]
    assert [each["settings"]["draft_tokens"] for each in outcome.json] == [2, 2, 0]
    assert outcome.err.splitlines() == [
        "error: --max-tokens 0 would say nothing",
        "hint: 1 or more, or -1 for as many as fit",
        "error: --max-tokens -2 is not in -1..2147483647",
        "max-tokens  3",
    ]
    assert outcome.code == 2


def test_drafting_comes_back_as_it_was(talk: Chat) -> None:
    outcome = talk("/set draft off\na\n/set draft on\na\n")
    assert [each["settings"]["draft_tokens"] for each in outcome.json] == [0, 2]


def test_what_a_pair_says_holds_until_it_is_set_and_again_after_default(
    chat: Chat, attention_pair: Pair, tmp_path: Path
) -> None:
    config = tmp_path / "models.toml"
    files = f'target = "{attention_pair.target}"\ndraft = "{attention_pair.draft}"\n'
    config.write_text(f'default = "p"\n[pairs.p]\n{files}draft_tokens = 0\nrule = "token"\n', "utf-8")
    lines = "/set draft-tokens default\n/set rule\n/set draft\na\n/set draft on\na\n/set rule block\na\n"
    outcome = chat(f"{lines}/set rule default\n/set draft off\na\n", "--config", config, "-n", 4, "-s", 1, "--json")
    assert [each["settings"]["rule"] for each in outcome.json] == ["token", "token", "block", "token"]
    assert [each["settings"]["draft_tokens"] for each in outcome.json] == [0, "auto", "auto", 0]
    assert outcome.err.splitlines() == ["rule  token", "draft  off"]


def test_a_token_that_is_none_is_refused_when_it_is_set(talk: Chat) -> None:
    outcome = talk("/set logit-bias nonsense=1\na\n")
    assert outcome.err.startswith("error: ")
    assert len(outcome.json) == 1


def test_all_settings_are_listed_with_their_values(chat: Chat, greeter: Path) -> None:
    lines = chat("/set\n", "-m", greeter, "--stop", "[/b]", "--stop", "a b").err.splitlines()
    assert "temperature           0.8" in lines
    assert "stop                  '[/b]' 'a b'" in lines
    assert "draft                 on" in lines


def test_an_unknown_command_is_told_the_nearest_and_nothing_is_asked(chat: Chat, greeter: Path) -> None:
    outcome = chat("/undoo\n", "-m", greeter)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: no command /undoo\nhint: did you mean /undo? //undoo … says a line with a slash\n"


def test_exit_ends_before_the_lines_do(chat: Chat, greeter: Path) -> None:
    assert chat("/exit\none\n", "-m", greeter) == Outcome(0, "", "")


def test_help_goes_to_stderr(chat: Chat, greeter: Path) -> None:
    outcome = chat("/help\n", "-m", greeter)
    assert outcome.out == ""
    assert "/regen               Answer the last question again." in outcome.err


def test_statistics_are_of_the_last_answer_and_of_all(chat: Chat, greeter: Path) -> None:
    outcome = chat("/stats\na\nb\n/stats\n", "-m", greeter, "-d", greeter)
    error, _, last, every, *bars = outcome.err.splitlines()
    assert error == "error: nothing has been answered yet"
    assert last.startswith("3 tokens · ")
    assert re.match(r"2 answers · 6 tokens · .* · accepted 4/4 \(100 %\)$", every)
    assert bars == [f"position  {at} {'━' * 24} 100% of 2" for at in (1, 2)]


def test_the_draft_of_an_answer_is_shown_with_what_was_rejected(chat: Chat, greeter: Path) -> None:
    first, second, third = range(FIRST_EXTRA, FIRST_EXTRA + 3)
    table = {first: {third: 1.0}, second: {first: 1.0}}
    wrong = memoryless_toy(table, {first: 1.0}, extra=[b"hi ", b"[/INST] ", b"there"])
    outcome = chat("a\n/draft\n", "-m", greeter, "-d", wrong.write(greeter.parent / "wrong.gguf"))
    shown = "hi [-there-]{+[/INST] +}[-hi there-]{+there+}[-hi there-]"
    assert outcome.err.splitlines()[0] == shown


def test_thoughts_are_shown_or_left_out_tags_and_all(chat: Chat, thinker: Path) -> None:
    assert chat("a\n", "-m", thinker).out == "<think>why </no </think>\n\nsaid\n"
    assert chat("a\n", "-m", thinker, "--no-think").out == "said\n"
    assert chat("/set think off\na\n", "-m", thinker).out == "said\n"
    cut = chat("a\n", "-m", thinker, "--no-think", "-n", 3)
    assert cut == Outcome(0, "", "note: the answer ended inside a thought, which --no-think hides\n")


def test_thoughts_between_control_tokens_are_told_apart_and_not_told_again(chat: Chat, greeter: Path) -> None:
    pieces = ["[THINK]", "[/THINK]", "why ", "said "]
    first = FIRST_EXTRA
    table = {first: {first + 2: 1.0}, first + 2: {first + 1: 1.0}, first + 1: {first + 3: 1.0}, first + 3: {EOS: 1.0}}
    toy = memoryless_toy(table, {first: 1.0}, extra=[piece.encode() for piece in pieces])
    kinds = [
        gguf.TokenType.CONTROL if FIRST_EXTRA <= at < FIRST_EXTRA + 2 else kind for at, kind in enumerate(toy.kinds)
    ]
    template = "{#[THINK]#}" + TEMPLATE
    path = (
        replace(toy, kinds=tuple(kinds)).having({"tokenizer.chat_template": template}).write(greeter.parent / "t.gguf")
    )
    assert chat("a\n", "-m", path).out == "[THINK]why [/THINK]said \n"
    assert chat("a\n", "-m", path, "--no-think").out == "said \n"
    first_prompt, second_prompt = (each["prompt_tokens"] for each in chat("a\na\n", "-m", path, "--json").json)
    assert second_prompt == 2 * first_prompt + len("said ") + 2, "the answer, the end of its turn and a newline"


def test_a_thought_that_the_template_opens_is_one(chat: Chat, greeter: Path) -> None:
    toy = memoryless_toy(
        {FIRST_EXTRA: {FIRST_EXTRA + 1: 1.0}, FIRST_EXTRA + 1: {EOS: 1.0}},
        {FIRST_EXTRA: 1.0},
        extra=[b"why</th", b"ink>said"],
    )
    path = toy.having({"tokenizer.chat_template": TEMPLATE + "<think>\n"}).write(greeter.parent / "opens.gguf")
    assert chat("a\n", "-m", path, "--no-think").out == "said\n"


def test_caches_are_kept_beside_a_session_and_not_read_anew(talk: Chat, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    whole = texts(talk("a\nb\n", "--temperature", 2))
    assert texts(talk("a\n", "--temperature", 2, "--session", path, "--save-cache")) == whole[:1]
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == ["s.json.cache"]
    assert texts(talk("b\n", "--session", path)) == whole[1:]
    assert "--save-cache needs --session" in talk("", "--save-cache").err


def test_a_model_without_a_template_says_so_for_each_message_and_the_chat_goes_on(chat: Chat, greeter: Path) -> None:
    toy = memoryless_toy({}, {EOS: 1.0}).having({"tokenizer.chat_template": None})
    outcome = chat("a\n/help\n", "-m", toy.write(greeter.parent / "bare.gguf"))
    assert outcome.code == 3
    assert outcome.out == ""
    assert "has no chat template" in outcome.err
    assert "/regen" in outcome.err


def test_control_tokens_in_a_message_are_text(talk: Chat) -> None:
    plain, special = talk("x\n").json[0], talk("x<|im_end|>\n").json[0]
    assert special["prompt_tokens"] == plain["prompt_tokens"] + len("<|im_end|>")


def test_json_is_a_line_for_each_answer(chat: Chat, thinker: Path) -> None:
    outcome = chat("a\nb\n", "-m", thinker, "--json", "--logprobs", 1)
    assert [each["text"] for each in outcome.json] == ["<think>why </no </think>\n\nsaid"] * 2
    assert all(len(each["logprobs"]) == 7 for each in outcome.json)


def test_a_chat_goes_on_from_its_file_exactly_as_it_would_have(talk: Chat, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    hot = ("--temperature", 2)
    whole = texts(talk("a\n/set top-k 7\nb\nc\n", *hot, "--system", "s"))
    assert texts(talk("a\n/set top-k 7\n", *hot, "--system", "s", "--session", path)) == whole[:1]
    assert texts(talk("b\n", "--session", path)) == whole[1:2], "-s and -n hold, the rest comes from the file"
    assert texts(talk(f"/load {path}\nc\n", "-s", 77)) == whole[2:]


def test_a_saved_chat_is_loaded_with_its_settings(talk: Chat, tmp_path: Path) -> None:
    path = tmp_path / "a b.json"
    saving = talk(f"a\n/save {path}\n/set max-tokens 2\n/reset\n/load {path}\n/set max-tokens\n")
    assert saving.err.splitlines()[-2:] == [f"note: 1 question and the settings of {path}", "max-tokens  8"]


@pytest.mark.parametrize("content", [b"{", b"not ours", b'{"kind": "specdec session", "version": 99}'])
def test_a_file_that_is_no_session_stops_the_chat_before_it_begins(content: bytes, talk: Chat, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    outcome = talk("a\n", "--session", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {path} is not") or outcome.err.startswith(f"error: session {path} was")
    loading = talk(f"a\n/load {path}\n/save {path}\nb\n")
    assert len(loading.json) == 2, "the chat goes on"
    assert loading.err.count("error: ") == 2
    assert path.read_bytes() == content


def test_a_session_of_another_model_is_noted(chat: Chat, greeter: Path, thinker: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    chat("a\n", "-m", greeter, "--session", path)
    noted = chat("", "-m", thinker, "--session", path)
    assert noted == Outcome(0, "", f"note: session {path} was with greeter.gguf, and this is thinker.gguf\n")


def test_a_message_that_cannot_fit_is_refused_and_the_chat_goes_on(talk: Chat) -> None:
    outcome = talk("x" * 300 + "\nshort\n", "-c", 256)
    assert len(outcome.json) == 1
    assert outcome.err.startswith("error: the prompt has ")
    assert outcome.code == 2


def test_the_oldest_turns_go_with_a_notice_when_the_context_is_full(talk: Chat) -> None:
    outcome = talk("x" * 30 + ("\n" + "x" * 30) * 9, "-c", 256)
    assert len(outcome.json) == 10
    assert outcome.code == 0
    assert "the context is full" in outcome.err


def test_an_edit_needs_a_person(chat: Chat, greeter: Path) -> None:
    assert chat("a\n/edit\n", "-m", greeter).err.startswith("error: /edit needs a person")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "no such option: --nonsense"),
        (["--temperature", "7000"], "--temperature 7000 is not in 0..100"),
        (["--grammar", "g", "--json-schema", "{}"], "--grammar and --json-schema both say what to follow"),
        (["--logprobs", "1"], "--logprobs needs --json"),
        (["PROMPT", "-p", "PROMPT"], "PROMPT and --prompt are the same thing"),
    ],
)
def test_a_wrong_command_line_is_refused_before_anything_loads(
    arguments: list[str], message: str, chat: Chat, tmp_path: Path
) -> None:
    outcome = chat("", "-m", tmp_path / "missing.gguf", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {message}")


def test_every_option_of_generate_but_raw_is_one_of_chat(capsys: pytest.CaptureFixture[str]) -> None:
    run(["generate", "--help"])
    theirs = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    run(["chat", "--help"])
    ours = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert theirs - ours <= {"--raw", "--suffix"}


def test_a_memory_grows_with_each_answer(chat: Chat, greeter: Path, tmp_path: Path) -> None:
    answers, both = tmp_path / "answers", tmp_path / "both"
    chat("a\n", "-m", greeter, "--memory", answers)
    chat("abcd\n", "-m", greeter, "--memory", both, "--memory-prompt")
    assert both.stat().st_size == answers.stat().st_size + 4 * len("abcd")
    assert "--memory-prompt needs --memory" in chat("", "-m", greeter, "--memory-prompt").err


def test_a_reader_that_leaves_ends_the_chat_quietly(greeter: Path) -> None:
    command = f'yes hello | "{sys.executable}" -m specdec_cli chat -m "{greeter}" --threads 1 -k 2 | head -c 5'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("hi [/", "")
