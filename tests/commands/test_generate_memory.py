"""`specdec generate --memory`: what one run keeps, the next one looks up."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli import memory
from specdec_cli.llama.gguf import read_vocabulary
from tests.commands import test_generate
from tests.commands.test_generate import Generate, chain
from tests.toy_gguf import FIRST_EXTRA

generate = test_generate.generate

WORDS = ["one ", "two ", "three ", "four "]
SAID = list(range(FIRST_EXTRA, FIRST_EXTRA + len(WORDS)))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says WORDS and ends."""
    return chain(WORDS, tmp_path_factory.mktemp("toys") / "target.gguf")


def kept(path: Path, target: Path) -> list[list[int]]:
    return [list(tokens) for tokens in memory.load(path, read_vocabulary(target, "target").fingerprint)]


def test_the_answer_is_kept_and_the_prompt_is_not(generate: Generate, target: Path, tmp_path: Path) -> None:
    path = tmp_path / "memory"
    assert generate("-m", target, "--memory", path, "secret").code == 0
    assert kept(path, target) == [SAID]


def test_the_prompt_is_kept_before_the_answer_if_asked_for(generate: Generate, target: Path, tmp_path: Path) -> None:
    path = tmp_path / "memory"
    generate("-m", target, "--memory", path, "--memory-prompt", "--raw", "ab")
    assert kept(path, target) == [[*b"ab", *SAID]]


def test_what_was_kept_is_proposed_in_the_next_run(generate: Generate, target: Path, tmp_path: Path) -> None:
    path = tmp_path / "memory"
    accepted = [generate("-m", target, "--memory", path, "--json", "hello").json["stats"]["accepted"] for _ in range(2)]
    assert accepted[0] == 0 < accepted[1]


def test_a_prompt_without_a_memory_has_nowhere_to_be_kept(generate: Generate, target: Path) -> None:
    outcome = generate("-m", target, "--memory-prompt", "x")
    assert outcome.code == 2
    assert outcome.err.splitlines()[0] == "error: --memory-prompt needs --memory, where it is kept"
