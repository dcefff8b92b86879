"""Options that commands take together: declared once, and read into one value."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from specdec_cli.commands import option_groups
from specdec_cli.commands.chat import chat
from specdec_cli.commands.generate import generate
from specdec_cli.commands.option_groups import AnswerOptions, EngineOptions, grouped
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.errors import UsageError
from specdec_cli.settings import ModelSettings


def test_a_group_becomes_its_options_and_comes_back_as_one_value() -> None:
    received = []

    def command(first: str = "x", *, engine: EngineOptions, last: bool = False) -> int:
        received.append((first, engine, last))
        return 7

    run = grouped(command)
    names = list(inspect.signature(run).parameters)
    assert names[0] == "first"
    assert names[-1] == "last"
    assert {"threads", "lora"} < set(names)
    given = {name: each.default for name, each in inspect.signature(run).parameters.items()}
    assert run(**{**given, "threads": 3}) == 7
    assert received == [("x", EngineOptions(threads=3), False)]


@pytest.mark.parametrize("command", [chat, generate])
def test_commands_take_every_option_of_an_answer(command: object) -> None:
    assert callable(command)
    assert set(AnswerOptions.__dataclass_fields__) < set(inspect.signature(command).parameters)


def test_every_option_of_the_chain_is_one_of_its_fields() -> None:
    names = set(AnswerOptions.__dataclass_fields__) - set(option_groups.NOT_OF_THE_CHAIN)
    assert names - {"dry_sequence_breaker"} <= set(SamplingChain.__dataclass_fields__)


def test_wishes_hold_what_is_said() -> None:
    wishes = AnswerOptions(temperature=0.5, stop=["a"], seed=3, max_tokens=9).to_wishes(2)
    assert (dict(wishes.chain), wishes.stops, wishes.seed) == ({"temperature": 0.5}, ("a",), 3)
    assert (wishes.max_tokens, wishes.logprobs) == (9, 2)


def test_a_seed_is_drawn_once_and_then_stays() -> None:
    one, other = AnswerOptions().seeded(), AnswerOptions().seeded()
    assert one.seed != other.seed
    assert one.seeded() is one


@pytest.mark.parametrize("options", [{"max_tokens": 0}, {"grammar": Path("g"), "json_schema": "{}"}])
def test_contradictions_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        AnswerOptions(**options).to_wishes()  # type: ignore[arg-type]


def test_settings_of_the_engine_are_those_of_a_session() -> None:
    assert EngineOptions().to_settings() == ModelSettings()
    assert EngineOptions(lora=["a=0.5"], threads=2).to_settings() == ModelSettings(lora=((Path("a"), 0.5),), threads=2)
