"""A machine without files, and a hub that only it asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest
from huggingface_hub import close_session, constants

from specdec_cli.downloads import transfers
from tests.downloads.fetched import CONTENT, FILE, REPO
from tests.hub_server import Hub, ask_only, serving


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has no files yet, belongs to nobody that the hub knows, and never waits."""
    folder = tmp_path / "data"
    monkeypatch.setattr(platformdirs, "user_data_path", lambda *_, **__: folder)
    monkeypatch.setattr(transfers, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return folder


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with one file, and the only one that is asked."""
    with serving() as hub:
        hub.add(REPO, FILE.file, CONTENT)
        ask_only(hub.endpoint, monkeypatch)
        yield hub
        close_session()
