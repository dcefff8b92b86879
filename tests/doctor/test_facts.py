"""What is read of the machine: its software, hardware and places."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from specdec_cli import calibration
from specdec_cli.chat.keys import history_path
from specdec_cli.core.costs import Costs
from specdec_cli.doctor import hardware
from specdec_cli.doctor.engine import read_engine
from specdec_cli.doctor.places import Place, read_kept_costs, read_pairs, read_places, to_place
from specdec_cli.doctor.software import EXTRAS, NEEDED, read_software
from specdec_cli.pair_list import own_table

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
COSTS = Costs((0.1, 0.2), {"model": (0.05, 0.06)})


def names(requirements: list[str]) -> set[str]:
    return {each.partition(">=")[0] for each in requirements if not each.startswith("specdec-cli")}


def test_the_packages_are_those_of_the_project() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(NEEDED) == names(PROJECT["dependencies"])
    assert set(EXTRAS) == set(extras)
    for extra, packages in EXTRAS.items():
        assert set(packages) == names(extras[extra])


def test_versions_are_those_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specdec_cli.doctor.software.NEEDED", ("numpy", "no-such-package"))
    software = read_software()
    assert software.packages["numpy"] is not None
    assert software.missing == ("no-such-package",)


def test_the_library_tells_how_it_was_built() -> None:
    engine = read_engine()
    assert engine.build is not None
    assert "CPU" in engine.build.backends
    assert engine.devices[0].total > 0


@pytest.mark.parametrize(
    ("attempt", "ending"),
    [
        ("import os; os.abort()", "by SIGABRT"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "by SIGILL"),
        ("import os; os._exit(77)", "with code 0x4d"),
    ],
)
def test_a_library_that_ends_the_process_does_not_end_this_one(attempt: str, ending: str) -> None:
    engine = read_engine(attempt)
    assert engine.build is None
    assert engine.problem == f"llama.cpp does not load: it ends the process {ending}"
    assert "reinstall" in engine.hint


def test_a_library_that_does_not_import_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from specdec_cli.llama.library import llama

    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.setattr("specdec_cli.llama.library.llama", llama.__wrapped__)
    engine = read_engine("")
    assert engine.problem.startswith("llama-cpp-python does not load: ")
    assert "pip install" in engine.hint


def test_the_processor_is_known_by_what_linux_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuinfo").write_text("model name\t: Fast 9000\nflags\t\t: fpu avx avx2 fma\n\nflags : none\n")
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:    2000 kB\n")
    monkeypatch.setattr(hardware, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(hardware, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(hardware, "CARDS", {"NVIDIA": tmp_path / "missing", "AMD": tmp_path / "meminfo"})
    found = hardware.read_hardware(loads=False)
    assert (found.cpu, found.features) == ("Fast 9000", frozenset({"AVX", "AVX2", "FMA"}))
    assert (found.available, found.memory, found.card) == (2_048_000, None, "AMD")


def test_where_the_system_does_not_tell_nothing_is_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "CPUINFO", tmp_path / "none")
    monkeypatch.setattr(hardware, "MEMINFO", tmp_path / "none")
    found = hardware.read_hardware(loads=False)
    assert (found.features, found.available) == (None, None)
    assert found.cpu


def test_the_places_are_those_that_the_rooms_use() -> None:
    places = {place.title: place.path for place in read_places(None)}
    calibration.save("doctor", COSTS)
    assert read_kept_costs().path.parent == places["cache"]
    assert COSTS in read_kept_costs().costs
    assert history_path().parent == places["state"]
    assert own_table(None) == places["config"]
    assert read_places(Path("mine.toml"))[1].path == Path("mine.toml")


def test_a_place_knows_its_size_and_whether_it_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "deep" / "file").write_bytes(bytes(700))
    (tmp_path / "folder" / "other").write_bytes(bytes(300))
    place = to_place("cache", tmp_path / "folder")
    assert (place.exists, place.writable, place.size) == (True, True, 1000)
    new = to_place("cache", tmp_path / "new" / "deeper")
    assert (new.exists, new.writable, new.size) == (False, True, 0)
    blocked = to_place("cache", tmp_path / "folder" / "other" / "deeper")
    assert (blocked.exists, blocked.writable) == (False, False)


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: not (mode & os.W_OK))
    assert not to_place("cache", tmp_path).writable


def test_of_a_file_that_is_replaced_what_counts_is_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models.toml").touch()
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path / "models.toml")
    assert to_place("config", tmp_path / "models.toml", is_file=True).writable
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path)
    assert not to_place("config", tmp_path / "models.toml", is_file=True).writable


def test_a_file_where_a_folder_belongs_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    assert not to_place("cache", tmp_path / "cache").writable


def test_a_place_that_may_not_be_looked_at_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refused)
    assert to_place("cache", tmp_path / "secret") == Place("cache", tmp_path / "secret", False, False, 0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("[" * 100_000, "is damaged"),
        ('{"one": 3}', "is damaged in part"),
        ('{"one": {"target": [], "drafts": {}}}', "is damaged in part"),
        ('{"one": {"target": [NaN], "drafts": {}}}', "is damaged in part"),
        ('{"one": {"target": [0], "drafts": {}}}', "is damaged in part"),
        ('{"one": {"target": [1], "drafts": {"model": []}}}', "is damaged in part"),
        ("{}", ""),
    ],
)
def test_damaged_measurements_are_told(
    content: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert read_kept_costs().problem == ""
    (tmp_path / "specdec").mkdir()
    (tmp_path / "specdec" / "costs.json").write_text(content)
    assert read_kept_costs().problem == problem


def test_a_file_of_measurements_that_is_none_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "specdec" / "costs.json").mkdir(parents=True)
    assert read_kept_costs().problem == "cannot be read: Is a directory"


def test_the_pairs_are_counted_and_a_wrong_table_is_kept_as_an_error(tmp_path: Path) -> None:
    config = tmp_path / "models.toml"
    config.write_text('default = "mine"\n[pairs.mine]\ntarget = "x.gguf"\n')
    pairs = read_pairs(config)
    assert (pairs.own, pairs.default, pairs.problem) == (1, "mine", None)
    assert pairs.known > 1
    config.write_text("[pairs.mine]\n")
    assert "has no" in str(read_pairs(config).problem)
