"""`specdec doctor` on toy models, as a user meets it: on a sound machine, and where everything is broken."""

from __future__ import annotations

import getpass
import io
import platform
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specdec_cli.cli import run
from specdec_cli.doctor import engine as doctor_engine
from specdec_cli.doctor import examination as doctor_examination
from specdec_cli.doctor import workers as doctor_workers
from specdec_cli.doctor.engine import Engine
from specdec_cli.doctor.hardware import Hardware
from specdec_cli.errors import ModelError
from specdec_cli.llama.greeting import Greeting
from tests.commands.test_generate import Outcome
from tests.toy_gguf import attention_toy
from tests.worker_process import WorkerProcess, free_port

TOKEN = "hf_AbCdEfGhIjKlMnOpQrStUvWx"
OWN = """\
default = "toys"

[pairs.toys]
target = "target.gguf"
draft = "draft.gguf"

[pairs.lost]
target = "lost.gguf"
draft = "none"
"""
SOUND = Hardware("a CPU", 8, 8, None, None, 10**10, 10**10, "")

Doctor = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of alice on wonderland, who has a token: two toys, a models.toml and folders of her own."""
    home = tmp_path / "people" / "alice"
    for name, place in (("CONFIG", ".config"), ("CACHE", ".cache"), ("DATA", ".data"), ("STATE", ".state")):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / place))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "alice")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(platform, "node", lambda: "wonderland")
    monkeypatch.setattr(doctor_examination, "read_hardware", lambda **_: SOUND)
    monkeypatch.setattr(doctor_engine, "_ending", lambda _: "")
    folder = home / ".config" / "specdec"
    folder.mkdir(parents=True)
    (folder / "models.toml").write_text(OWN)
    attention_toy(3.0).write(folder / "target.gguf")
    attention_toy(2.0).write(folder / "draft.gguf")
    return home


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    """A worker that lends a CPU."""
    with WorkerProcess() as process:
        yield process


@pytest.fixture
def doctor(home: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Run `specdec doctor` in this process, with no terminal on any stream."""

    def start(*arguments: object) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = run(["doctor", *map(str, arguments)])
        captured = capsysbinary.readouterr()
        return Outcome(code, captured.out.decode(), captured.err.decode())

    return start


def test_a_sound_installation_ends_with_nothing_to_fix(doctor: Doctor) -> None:
    outcome = doctor()
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err) == (0, "")
    assert lines[0].startswith("specdec   0.")
    assert lines[-1] == "Nothing to fix."
    assert "config    ~/.config/specdec/models.toml (1 kB)" in lines
    assert "cache     ~/.cache/specdec (not there yet)" in lines
    assert "costs     nothing was measured yet" in lines
    assert "pairs     20, 2 of them your own; the default is toys" in lines
    assert "\x1b" not in outcome.out


def test_a_pair_has_all_that_models_check_says_of_it(
    doctor: Doctor, home: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    run(["models", "check", "toys"])
    checked = capsysbinary.readouterr().out.decode().replace(str(home), "~")
    assert checked.endswith("verdict   can run\n")
    assert f"pair      toys\n{checked}" in doctor("toys").out
    folder = home / ".config" / "specdec"
    by_hand = doctor("-m", folder / "target.gguf", "-d", folder / "draft.gguf")
    assert f"pair      of files\n{checked}" in by_hand.out


def test_the_report_names_no_person_no_machine_and_no_secret(doctor: Doctor, home: Path) -> None:
    folder = home.parent.parent / "alice" / TOKEN
    folder.mkdir(parents=True)
    model = attention_toy().write(folder / "alice-on-wonderland.gguf")
    for arguments in (["toys"], ["lost"], ["-m", model], ["-m", model, "--json"], ["-m", folder / "none.gguf"]):
        out = doctor(*arguments).out
        assert out
        assert [word for word in ("alice", "wonderland", TOKEN, str(home)) if word in out] == []
    assert "<user>-on-<host>.gguf" in doctor("-m", model).out


def test_a_pair_that_cannot_be_used_is_the_first_thing_to_fix_and_exit_3(doctor: Doctor, home: Path) -> None:
    outcome = doctor("lost")
    assert (outcome.code, outcome.err) == (3, "")
    assert outcome.out.splitlines()[-3:-1] == [
        "To fix, the first one first:",
        "1. target ~/.config/specdec/lost.gguf does not exist",
    ]
    (home / ".config" / "specdec" / "draft.gguf").write_bytes(b"GGUF")
    assert doctor("toys").code == 3


def test_a_broken_models_toml_is_told_with_its_line_and_the_rest_is_still_there(doctor: Doctor, home: Path) -> None:
    (home / ".config" / "specdec" / "models.toml").write_text('[pairs.x]\ntarget = "y"\nsize = 3\n')
    outcome = doctor()
    assert (outcome.code, outcome.err) == (2, "")
    assert "llama.cpp ggml" in outcome.out
    fixes = outcome.out.partition("To fix, the first one first:\n")[2].splitlines()
    assert fixes[0].startswith("1. ~/.config/specdec/models.toml:3: ")
    assert len([line for line in fixes if line[0].isdigit()]) == 1, "told once"


def test_without_llama_cpp_the_rest_is_still_told_and_that_comes_first(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Engine(None, problem="llama.cpp does not load: it ends the process by SIGILL", hint="install it again")
    monkeypatch.setattr(doctor_examination, "read_engine", lambda: broken)
    outcome = doctor()
    assert (outcome.code, outcome.err) == (3, "")
    assert "llama.cpp does not load; why stands below" in outcome.out.splitlines()
    assert "pair      not looked at: llama.cpp does not load" in outcome.out.splitlines()
    assert outcome.out.endswith("1. llama.cpp does not load: it ends the process by SIGILL\n   install it again\n")
    report = doctor("--json")
    assert (report.code, report.json["llama_cpp"], report.json["devices"], report.json["pair"]) == (3, None, [], None)


def test_a_library_that_does_not_import_is_no_failure_of_the_doctor(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specdec_cli.llama.library import llama

    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.setattr("specdec_cli.llama.library.llama", llama.__wrapped__)
    outcome = doctor()
    assert (outcome.code, outcome.err) == (3, "")
    assert "1. llama-cpp-python does not load: " in outcome.out


def test_an_unknown_pair_is_exit_2_with_the_nearest_name(doctor: Doctor) -> None:
    outcome = doctor("toy")
    assert outcome.code == 2
    assert '1. no pair named "toy" in models.toml' in outcome.out
    assert 'did you mean "toys"?' in outcome.out


def test_damaged_measurements_are_exit_2(doctor: Doctor, home: Path) -> None:
    (home / ".cache" / "specdec").mkdir(parents=True)
    (home / ".cache" / "specdec" / "costs.json").write_text("{")
    outcome = doctor()
    assert outcome.code == 2
    assert "1. ~/.cache/specdec/costs.json is damaged\n   delete it" in outcome.out


def test_measurements_are_shown_as_what_they_mean(doctor: Doctor, home: Path) -> None:
    (home / ".cache" / "specdec").mkdir(parents=True)
    target = [0.01 * (1 + 0.5 * n) for n in range(8)]
    entry = f'{{"target": {target}, "drafts": {{"model": [0.004]}}}}'
    (home / ".cache" / "specdec" / "costs.json").write_text(
        f"{{{', '.join(f'{chr(34)}{n}{chr(34)}: {entry}' for n in range(8))}}}"
    )
    lines = doctor().out.splitlines()
    assert "costs     measured for 8 pairs" in lines
    assert lines.count("          10.0 ms a token, v(4) 2.50, v(8) 4.50, c of model 0.40") == 6
    assert "          and 2 older ones" in lines


def test_advice_alone_is_exit_0(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Hardware("a CPU", 8, 8, 2.0, None, 10**10, 10**3, "")
    monkeypatch.setattr(doctor_examination, "read_hardware", lambda **_: busy)
    outcome = doctor()
    assert outcome.code == 0
    assert "1. the pair needs 3 MB of memory and 0 MB are free now" in outcome.out
    assert "2. this process gets the time of 2 CPUs" in outcome.out


def test_what_workers_lend_counts_as_memory_and_too_little_is_exit_3(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lend(free: int) -> None:
        monkeypatch.setattr(doctor_workers, "greet", lambda each: Greeting(each, (7, 0, 0), 0.001, ((free, free),)))

    monkeypatch.setattr(doctor_workers, "protocol_version", lambda: (7, 0, 0))
    tiny = Hardware("a CPU", 8, 8, None, None, 10**6, 10**6, "")
    monkeypatch.setattr(doctor_examination, "read_hardware", lambda **_: tiny)
    monkeypatch.setattr("specdec_cli.pairs.check.memory", lambda: 10**6)
    assert doctor().code == 3
    lend(10**9)
    outcome = doctor("--rpc", "127.0.0.1")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (0, "Nothing to fix.")
    lend(10**6)
    outcome = doctor("--rpc", "127.0.0.1")
    assert outcome.code == 3
    assert "1. the pair cannot run: it needs 3 MB of memory and this machine has 1 MB, its workers 1 MB" in outcome.out


def test_json_has_all_of_it_in_numbers(doctor: Doctor) -> None:
    report = doctor("toys", "--json").json
    assert set(report) == {
        "specdec",
        "python",
        "system",
        "packages",
        "extras",
        "llama_cpp",
        "devices",
        "workers",
        "machine",
        "places",
        "pairs",
        "costs",
        "pair",
        "placing",
        "to_fix",
    }
    assert (report["workers"], report["placing"]) == ([], {"target": {}, "draft": {}})
    assert set(report["devices"][0]) == {"name", "description", "kind", "backend", "free", "total", "endpoint"}
    assert report["places"]["config"] == {
        "path": "~/.config/specdec/models.toml",
        "exists": True,
        "writable": True,
        "size": len(OWN),
    }
    assert report["devices"][0]["kind"] == "CPU"
    assert report["machine"]["memory"] == 10**10
    assert (report["pair"]["pair"], report["pair"]["runs"], report["to_fix"]) == ("toys", True, [])


def test_workers_are_told_with_their_devices_and_the_layers_that_would_go_there(
    doctor: Doctor, worker: WorkerProcess
) -> None:
    outcome = doctor("toys", "--rpc", worker.endpoint)
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err, lines[-1]) == (0, "", "Nothing to fix.")
    assert any(re.fullmatch(rf" +RPC0: of worker {worker.endpoint}, .+ GB of .+ GB free", line) for line in lines)
    assert any(
        re.fullmatch(rf"workers   {worker.endpoint}: protocol 7\.[\d.]+, round trip .+ ms", line) for line in lines
    )
    layers = lines.index(f"layers    target: 3 of 3 layers on RPC0 ({worker.endpoint})")
    assert lines[layers - 1 : layers + 2 : 2] == ["verdict   can run", "          draft: on the CPU"]
    assert "layers    " not in doctor("toys").out


def test_workers_and_layers_are_in_json_too(doctor: Doctor, worker: WorkerProcess) -> None:
    report = doctor("toys", "--rpc", worker.endpoint, "--gpu-layers", "2", "--draft-device", "RPC0", "--json").json
    assert report["placing"] == {"target": {"RPC0": 2}, "draft": {"RPC0": 3}}
    (told,) = report["workers"]
    assert (told["endpoint"], told["devices"], told["problem"]) == (worker.endpoint, ["RPC0"], None)
    assert told["protocol"].startswith("7.")
    assert 0 < told["round_trip"] < 5
    device = report["devices"][-1]
    assert (device["name"], device["endpoint"], device["backend"]) == ("RPC0", worker.endpoint, "RPC")


def test_the_workers_of_a_pair_are_asked_unless_others_are_named(
    doctor: Doctor, home: Path, worker: WorkerProcess
) -> None:
    config = home / ".config" / "specdec" / "models.toml"
    config.write_text(OWN.replace('draft = "draft.gguf"\n', f'draft = "draft.gguf"\nrpc = ["{worker.endpoint}"]\n'))
    assert f"workers   {worker.endpoint}: protocol" in doctor("toys").out
    assert "workers   " not in doctor("toys", "--rpc", "none").out


def test_a_worker_that_is_not_there_is_exit_3_and_all_else_is_told(doctor: Doctor, worker: WorkerProcess) -> None:
    absent = f"127.0.0.1:{free_port()}"
    outcome = doctor("toys", "--rpc", f"{absent},{worker.endpoint}")
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err) == (3, "")
    assert f"workers   {absent}: cannot be used; why stands below" in lines
    assert any(line.startswith(f"          {worker.endpoint}: protocol 7.") for line in lines)
    assert "verdict   can run" in lines
    assert f"1. worker {absent}: nothing listens there" in lines
    assert "layers    " not in outcome.out


def test_a_device_that_is_not_there_is_exit_2_and_the_pair_is_still_told(doctor: Doctor) -> None:
    outcome = doctor("toys", "--device", "CUDA7")
    assert (outcome.code, outcome.err) == (2, "")
    assert "verdict   can run" in outcome.out
    assert "1. --device CUDA7 is no device here" in outcome.out


def test_hosts_of_workers_are_hidden_and_loopback_is_not(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(endpoint: str) -> Greeting:
        raise ModelError(f"worker {endpoint} cannot be reached: no answer", hint="is it up?")

    monkeypatch.setattr(doctor_workers, "greet", silent)
    hosts = ["gpu-box.example", "10.1.2.3", "localhost"]
    for more in ([], ["--json"]):
        out = doctor("toys", "--rpc", ",".join(hosts), *more).out
        assert [host for host in hosts if host in out] == ["localhost"]
        assert "worker <host 2>:50052 cannot be reached: no answer" in out


def test_what_a_file_says_of_itself_stays_on_its_line(doctor: Doctor, home: Path) -> None:
    config = home / "models.toml"
    config.write_text('default = "a\\u001b[2J\\nb"\n[pairs."a\\u001b[2J\\nb"]\ntarget = "x.gguf"\n')
    out = doctor("--config", config).out
    assert "\x1b" not in out
    assert "the default is a␛[2J␊b" in out
