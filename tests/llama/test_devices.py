"""The devices that llama.cpp found, and the share of the processors that a control group leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specdec_cli.llama import devices as rooms
from specdec_cli.llama.devices import cpu_quota, devices, usable_cpus
from specdec_cli.llama.library import build


def test_the_cpu_is_among_the_devices_with_its_memory() -> None:
    (cpu,) = [device for device in devices() if device.kind == "CPU"]
    assert (cpu.name, cpu.backend) == ("CPU", "CPU")
    assert 0 < cpu.free <= cpu.total
    assert cpu.description == " ".join(cpu.description.split())


def test_the_build_names_its_backends_and_flags() -> None:
    told = build()
    assert "CPU" in told.backends
    assert set(told.features) <= set(told.backends)
    assert all(flag and " " not in flag and not flag.endswith("=1") for flag in told.features["CPU"])
    assert told.bindings.startswith("0.")


def test_flags_are_told_apart_by_their_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    from specdec_cli.llama.library import llama

    told = b"CUDA : ARCHS = 750,800 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | AVX2 = 1 | "
    monkeypatch.setattr(llama(), "llama_print_system_info", lambda: told)
    assert build().features == {"CUDA": ("ARCHS=750,800", "USE_GRAPHS"), "CPU": ("SSE3", "AVX2")}


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of control groups of which this process is in `/jobs/mine`."""
    (tmp_path / "own").write_text("4:cpu,cpuacct:/old\n2:memory:/elsewhere\n0::/jobs/mine\n")
    (tmp_path / "groups" / "jobs" / "mine").mkdir(parents=True)
    (tmp_path / "groups" / "cpu" / "old").mkdir(parents=True)
    monkeypatch.setattr(rooms, "OWN_CGROUP", tmp_path / "own")
    monkeypatch.setattr(rooms, "CGROUPS", tmp_path / "groups")
    return tmp_path / "groups"


def test_without_a_limit_there_is_no_quota(groups: Path) -> None:
    assert cpu_quota() is None
    (groups / "cpu.max").write_text("max 100000\n")
    (groups / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (groups / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert cpu_quota() is None


@pytest.mark.parametrize("group", ["", "jobs", "jobs/mine"])
def test_the_limit_of_a_group_holds_for_those_inside(groups: Path, group: str) -> None:
    (groups / group / "cpu.max").write_text("150000 100000\n")
    assert cpu_quota() == 1.5


def test_the_lowest_of_all_limits_holds_and_the_older_kind_of_groups_is_known(groups: Path) -> None:
    (groups / "jobs" / "cpu.max").write_text("400000 100000\n")
    (groups / "cpu" / "old" / "cpu.cfs_quota_us").write_text("50000\n")
    (groups / "cpu" / "old" / "cpu.cfs_period_us").write_text("25000\n")
    assert cpu_quota() == 2


@pytest.mark.parametrize("content", ["", "many few\n", "100000\n", "100000 0\n"])
def test_what_cannot_be_read_limits_nothing(groups: Path, content: str) -> None:
    (groups / "cpu.max").write_text(content)
    assert cpu_quota() is None


def test_where_there_are_no_groups_nothing_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "OWN_CGROUP", tmp_path / "none")
    monkeypatch.setattr(rooms, "CGROUPS", tmp_path / "none")
    assert cpu_quota() is None


def test_the_usable_cpus_are_those_that_this_process_may_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert usable_cpus() == 2
