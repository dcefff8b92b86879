"""`specdec distil` before it does anything: what it needs, and what it refuses."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

from specdec_cli.cli import run
from specdec_cli.commands.distil import KINDS
from specdec_cli.llama import quantising

Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """What a command is refused with."""

    def start(*arguments: str) -> str:
        assert run(["distil", *arguments]) == 2
        return capsys.readouterr().err

    return start


def test_the_kinds_offered_are_those_that_can_be_written() -> None:
    assert tuple(quantising.KINDS) == KINDS


@pytest.mark.parametrize("command", [["train", "x.answers"], ["export", "x.training"]])
def test_without_pytorch_it_says_how_to_get_it(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    said = refused(*command, "-m", "big.gguf", "-o", "out")
    assert said == 'error: PyTorch or gguf is not installed\nhint: pip install "specdec-cli[distil]"\n'


def test_a_width_is_a_whole_number_of_heads(refused: Refused) -> None:
    said = refused("train", "-m", "big.gguf", "-o", "out", "x.answers", "--width", "100")
    assert said.startswith("error: --width 100 is not a multiple of 64\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["train", "x", "-o", "y"], "error: missing option '-m' / '--target'"),
        (["export", "x", "-m", "big.gguf"], "error: missing option '-o' / '--output'"),
        (["export", "x", "-o", "y", "--type", "q3"], "error: --type q3 is not one of f32, "),
        (["export", "x", "-o", "y", "--embedding-type", "int8"], "error: --embedding-type int8 is not one of f32, "),
        (["train", "x", "-o", "y", "--train-on", "tpu"], "error: --train-on tpu is not one of cpu, cuda"),
        (["train", "x", "-o", "y", "--epochs", "0"], "error: --epochs 0 is not in 1..1000"),
        (["evaluate", "--prompts", "0"], "error: --prompts 0 is not in 1.."),
    ],
)
def test_a_wrong_value_is_one_line(refused: Refused, arguments: list[str], complaint: str) -> None:
    assert refused(*arguments).startswith(complaint)
