"""The prompts of a bench: those of the package, and a user's file with every mistake told by its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specdec_cli.bench.prompts import BenchPrompt, built_in, by_turn, read_prompts
from specdec_cli.errors import UsageError


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")
    return path


def test_the_package_brings_several_prompts_of_each_kind() -> None:
    prompts = built_in()
    kinds = [each.kind for each in prompts]
    assert set(kinds) == {"code", "prose", "questions", "edit", "json"}
    assert all(kinds.count(kind) == 3 for kind in kinds)
    assert len({each.place for each in prompts}) == len({each.prompt for each in prompts}) == 15


def test_a_file_names_its_prompts_or_they_are_called_like_it(tmp_path: Path) -> None:
    path = written(
        tmp_path / "mine.jsonl",
        {"prompt": "one", "name": "code"},
        "",
        {"prompt": "line\u2028separator"},
        {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}], "max_tokens": 9},
    )
    one, two, three = read_prompts(path)
    assert one == BenchPrompt("code", f"prompt file {path}, line 1", "one")
    assert (two.kind, two.place, two.prompt) == ("mine", f"prompt file {path}, line 3", "line\u2028separator")
    assert (three.kind, three.max_tokens) == ("mine", 9)
    assert [message["role"] for message in three.prompt if not isinstance(message, str)] == ["system", "user"]


def test_a_byte_order_mark_and_windows_line_ends_are_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"prompt": "one"}\r\n{"prompt": "two"}\r\n')
    assert [each.prompt for each in read_prompts(path)] == ["one", "two"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[1]", "it is not an object"),
        ('{"promt": "x"}', 'there is no key "promt", only name, prompt, messages, max_tokens'),
        ("{}", "it needs either prompt or messages"),
        ('{"prompt": "x", "messages": []}', "it needs either prompt or messages"),
        ('{"prompt": " "}', "prompt must be some text"),
        ('{"prompt": 3}', "prompt must be some text"),
        ('{"prompt": "\\ud800"}', "prompt must be some text"),
        ('{"prompt": "x", "name": ""}', "name must be some text"),
        ('{"prompt": "x", "name": "all"}', 'name "all" is what all of them together are called'),
        ('{"prompt": "x", "max_tokens": 0}', "max_tokens must be a whole number above 0"),
        ('{"prompt": "x", "max_tokens": true}', "max_tokens must be a whole number above 0"),
        ('{"messages": []}', "messages must be a list of one message at least"),
        ('{"messages": "x"}', "messages must be a list of one message at least"),
        ('{"messages": [{"role": "user"}]}', "a message needs role and content alone"),
        ('{"messages": [{"role": "x", "content": "y"}]}', "the role of a message must be one of"),
        ('{"messages": [{"role": ["x"], "content": "y"}]}', "the role of a message must be one of"),
        ('{"messages": [{"role": "user", "content": 1}]}', "the content of a message must be some text"),
    ],
)
def test_each_mistake_is_told_with_its_line(tmp_path: Path, line: str, complaint: str) -> None:
    path = written(tmp_path / "prompts.jsonl", {"prompt": "fine"}, line)
    with pytest.raises(UsageError) as caught:
        read_prompts(path)
    assert caught.value.message.startswith(f"prompt file {path}, line 2: {complaint}")
    assert caught.value.hint


def test_what_is_not_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(b'{"prompt": "one"}\n{"prompt": "caf\xe9"}\n')
    with pytest.raises(UsageError, match="line 2: it is not UTF-8"):
        read_prompts(path)


@pytest.mark.parametrize(("content", "complaint"), [(None, "cannot be read"), (b"\n \n", "holds no prompt")])
def test_a_file_without_prompts_is_refused(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    path = tmp_path / "prompts.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=complaint):
        read_prompts(path)


def test_a_turn_asks_one_prompt_of_each_kind_and_all_are_asked_as_often() -> None:
    prompts = [
        BenchPrompt(kind, f"{kind}{number}", "x") for kind, count in (("a", 3), ("b", 1)) for number in range(count)
    ]
    turns = [[each.place for each in turn] for turn in by_turn(prompts, 2)]
    assert turns == [["a0", "b0"], ["a1", "b0"], ["a2"], ["a0"], ["a1"], ["a2"]]
