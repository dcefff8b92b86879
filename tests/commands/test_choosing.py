"""The offer to fetch a pair that is not here, as a person at a terminal meets it, from a hub on this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub_server import Hub, serving
from tests.pty_process import PtyProcess
from tests.toy_gguf import EOS, FIRST_EXTRA, memoryless_toy

ANSWER = "fetched and answered"


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A model that says ANSWER to anything."""
    toy = memoryless_toy({FIRST_EXTRA: {EOS: 1.0}}, {FIRST_EXTRA: 1.0}, extra=[ANSWER.encode()])
    return toy.write(tmp_path_factory.mktemp("model") / "x.gguf").read_bytes()


@pytest.fixture
def hub(content: bytes) -> Iterator[Hub]:
    with serving() as hub:
        hub.add("o/r", "big.gguf", content)
        yield hub


@pytest.fixture
def config(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "models.toml"
    path.write_text(f'[pairs.remote]\ntarget = {{ repo = "o/r", file = "big.gguf", size = {len(content)} }}\n', "utf-8")
    return path


@pytest.fixture
def environment(hub: Hub, tmp_path: Path) -> dict[str, str]:
    return {"HF_ENDPOINT": hub.endpoint, "XDG_DATA_HOME": str(tmp_path), "HF_HOME": str(tmp_path), "HF_TOKEN": ""}


def at_terminal(config: Path, environment: dict[str, str]) -> PtyProcess:
    arguments = ["generate", "hi", "--pair", "remote", "--config", config, "--threads", "1", "--no-stats"]
    return PtyProcess(arguments, columns=300, environment=environment)


@pytest.mark.skipif(sys.platform != "linux", reason="where files lie is told by XDG_DATA_HOME")
def test_yes_fetches_the_pair_and_answers(config: Path, environment: dict[str, str], hub: Hub, tmp_path: Path) -> None:
    with at_terminal(config, environment) as process:
        process.wait_for("remote is not on this machine. Fetch it now (")
        process.press(b"y\n")
        assert process.wait() == 0
        assert process.lines()[-1] == ANSWER
    assert (tmp_path / "specdec" / "models" / "o" / "r" / "big.gguf").exists()
    assert hub.sent


@pytest.mark.parametrize("keys", [b"\n", b"\x04"])
def test_all_else_fetches_nothing_and_leaves_the_command(
    config: Path, environment: dict[str, str], hub: Hub, keys: bytes
) -> None:
    with at_terminal(config, environment) as process:
        process.wait_for("Fetch it now (")
        process.press(keys)
        assert process.wait() == 3
        assert process.lines()[1:] == [
            "error: big.gguf of o/r is not on this machine",
            f"hint: fetch it with: specdec models pull remote --config {config}",
        ]
    assert hub.asked == []


def test_ctrl_c_at_the_question_is_exit_code_130(config: Path, environment: dict[str, str], hub: Hub) -> None:
    with at_terminal(config, environment) as process:
        process.wait_for("Fetch it now (")
        process.press(b"\x03")
        assert process.wait() == 130
    assert hub.asked == []


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_without_a_person_the_command_is_told_and_nothing_asked(
    config: Path, environment: dict[str, str], hub: Hub, quiet: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "specdec_cli", "generate", "hi", "--pair", "remote", "--config", str(config)]
    done = subprocess.run([*command, *quiet], input="", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "error: big.gguf of o/r is not on this machine\n"
        f"hint: fetch it with: specdec models pull remote --config {config}\n"
    )
    assert hub.asked == []


@pytest.mark.skipif(sys.platform != "linux", reason="where files lie is told by XDG_DATA_HOME")
def test_pull_shows_a_bar_on_a_terminal_and_clears_it(config: Path, environment: dict[str, str]) -> None:
    arguments = ["models", "pull", "remote", "--config", config]
    with PtyProcess(arguments, columns=100, environment=environment) as process:
        assert process.wait() == 0
        assert "━".encode() in process.received
        assert [line.split(",")[0] for line in process.lines()] == ["note: remote is here"]
