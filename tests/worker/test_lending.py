"""Which devices a worker lends."""

from __future__ import annotations

import pytest

from specdec_cli.errors import UsageError
from specdec_cli.llama.devices import Device
from specdec_cli.worker import lending
from specdec_cli.worker.lending import choose_devices, describe

CPU = Device("CPU", "a processor", "CPU", "CPU", 32 * 10**9, 32 * 10**9)
CUDA = [Device(f"CUDA{index}", "a card", "GPU", "CUDA", 70 * 10**9, 80 * 10**9) for index in range(2)]
BLAS = Device("BLAS", "a library", "accelerator", "BLAS", 0, 0)


def names(there: list[Device], monkeypatch: pytest.MonkeyPatch, *wanted: str) -> list[str]:
    monkeypatch.setattr(lending, "devices", lambda: there)
    return [device.name for device in choose_devices(wanted)]


def test_every_accelerator_is_lent_before_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names([*CUDA, BLAS, CPU], monkeypatch) == ["CUDA0", "CUDA1"]


def test_without_one_the_cpu_is_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names([BLAS, CPU], monkeypatch) == ["CPU"]


def test_the_devices_that_are_named_are_lent_in_that_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names([*CUDA, BLAS, CPU], monkeypatch, "CPU", "CUDA1") == ["CPU", "CUDA1"]


def test_one_that_is_not_here_is_refused_with_all_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match='"cuda0" is not a device') as refused:
        names([*CUDA, CPU], monkeypatch, "cuda0")
    assert refused.value.hint == "there are: CUDA0, CUDA1, CPU"


def test_a_device_is_described_with_its_memory() -> None:
    assert describe(CPU) == "CPU: a processor, 32.0 GB"
    assert describe(CUDA[0]) == "CUDA0: a card, 70.0 GB of 80.0 GB free"
