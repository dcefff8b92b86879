"""What /set reads: the words of the command line, with its complaints."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_cli.chat.choices import changed, find, read_value, restore, to_settings
from specdec_cli.commands.chat import to_choices
from specdec_cli.commands.option_groups import AnswerOptions
from specdec_cli.errors import UsageError

CHOICES = to_choices()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("temperature", "0.5", 0.5),
        ("--top-k", "3", 3),
        ("top_k", "default", None),
        ("Draft-Tokens", "auto", "auto"),
        ("draft-tokens", "0", 0),
        ("rule", "token", "token"),
        ("stop", '"a b" c', ["a b", "c"]),
        ("stop", "default", None),
        ("json-schema", '{"type": "object"}', '{"type": "object"}'),
    ],
)
def test_a_value_is_read_as_the_command_line_reads_it(name: str, text: str, value: Any) -> None:
    assert read_value(find(CHOICES, name), text) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("temperature", "7000", "--temperature 7000 is not in 0..100"),
        ("rule", "greedy", "--rule greedy is not one of token, block, coupled"),
        ("seed", "-2", "--seed -2 is not in -1..9007199254740991"),
        ("stop", '""', "--stop needs some text"),
        ("stop", '"', "/set stop: no closing quotation"),
    ],
)
def test_a_wrong_value_gets_the_complaint_of_the_command_line(name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        read_value(find(CHOICES, name), text)
    assert refusal.value.message == message


def test_an_unknown_setting_is_told_its_nearest_name() -> None:
    with pytest.raises(UsageError) as refusal:
        find(CHOICES, "temprature")
    assert refusal.value.hint == "did you mean temperature?"


def test_settings_come_back_from_a_file_as_they_were() -> None:
    wished = AnswerOptions(temperature=0.1, stop=["a", "b c"], draft_tokens="auto", seed=2**53 - 1, rule="token")
    kept = to_settings(CHOICES, wished)
    assert kept.keys() == {"temperature", "stop", "draft_tokens", "seed", "rule"}
    assert restore(CHOICES, kept, AnswerOptions()) == wished


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 7000},
        {"temperature": True},
        {"temperature": None},
        {"temperature": [1]},
        {"temperature": {}},
        {"stop": "text"},
        {"stop": [1, None]},
        {"nonsense": 1},
        {"seed": 1.5},
    ],
)
def test_a_setting_of_a_file_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        restore(CHOICES, settings, AnswerOptions())


def test_a_change_leaves_the_rest() -> None:
    wished = AnswerOptions(temperature=0.1)
    assert changed(wished, find(CHOICES, "top-k"), 3) == AnswerOptions(temperature=0.1, top_k=3)


def test_rules_complete() -> None:
    assert find(CHOICES, "rule").words == ("token", "block", "coupled")
