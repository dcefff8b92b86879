from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from specdec_cli.errors import ModelError
from specdec_cli.llama import machine
from specdec_cli.llama.devices import devices

CARDS = [device for device in devices() if device.kind == "GPU"]


@pytest.fixture(autouse=True)
def forgetful() -> None:
    machine.memory.cache_clear()


@pytest.mark.skipif(sys.platform != "linux" or bool(CARDS), reason="compares with what Linux says of its memory")
def test_without_a_card_it_is_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LIMITS", ())
    assert machine.memory() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_container_has_what_it_may_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (limit := tmp_path / "memory.max").write_text("1000000000\n")
    (none := tmp_path / "none").write_text("max\n")
    monkeypatch.setattr(machine, "_total", lambda _: 64 * 10**9)
    monkeypatch.setattr(machine, "LIMITS", (none, limit, tmp_path / "missing"))
    assert machine.memory() == 10**9 + 64 * 10**9 * len(CARDS)


def test_without_the_library_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ModelError("llama-cpp-python does not load")

    monkeypatch.setattr(machine, "llama", broken)
    assert machine.memory() is None
    machine.memory.cache_clear()
