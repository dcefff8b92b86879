"""Options that commands take together: declared once, and read into one value."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.commands import option_groups
from specdec_cli.commands.chat import chat
from specdec_cli.commands.generate import generate
from specdec_cli.commands.option_groups import AnswerOptions, EngineOptions, PlacingOptions, grouped
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.errors import UsageError
from specdec_cli.settings import ModelPlacing, ModelSettings, Placing


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


def test_what_places_the_models_is_read_for_target_and_draft_apart() -> None:
    given = PlacingOptions(
        rpc="far:1,near",
        device="CUDA0, RPC0",
        draft_device="none",
        gpu_layers="auto",
        draft_gpu_layers=0,
        tensor_split="3, 1.5",
        split_mode="row",
        main_gpu=1,
    )
    assert given.to_placing() == Placing(
        ("far:1", "near:50052"),
        ModelPlacing(("CUDA0", "RPC0"), "auto", (3.0, 1.5), "row", 1),
        ModelPlacing(("none",), 0),
    )
    assert EngineOptions(rpc="none", threads=2).to_settings() == ModelSettings(placing=Placing(rpc=()), threads=2)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"device": "CUDA0,"}, '--device "CUDA0," has an empty name'),
        ({"draft_device": " "}, '--draft-device " " has an empty name'),
        ({"device": "a, b,a"}, "--device names a twice"),
        ({"tensor_split": "3,x"}, '--tensor-split "3,x" is no list of shares'),
        ({"tensor_split": ""}, '--tensor-split "" is no list of shares'),
        ({"tensor_split": "0,0"}, '--tensor-split "0,0" is no list of shares'),
        ({"tensor_split": "3,-1"}, '--tensor-split "3,-1" is no list of shares'),
        ({"tensor_split": "inf,1"}, '--tensor-split "inf,1" is no list of shares'),
        ({"tensor_split": "nan"}, '--tensor-split "nan" is no list of shares'),
        ({"rpc": "far:0"}, '--rpc far:0 has the port "0", which is not in 1..65535'),
    ],
)
def test_what_cannot_be_read_is_named_with_its_option(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        PlacingOptions(**options).to_placing()
    assert caught.value.message == complaint
