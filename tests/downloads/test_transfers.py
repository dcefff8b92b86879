from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from specdec_cli.catalog import place_of
from specdec_cli.downloads import fetch, transfers
from specdec_cli.errors import ModelError
from tests.downloads.fetched import CONTENT, FILE, OTHER, REPO, failure, names, part, pull
from tests.hub_server import Hub


def test_a_cut_connection_goes_on_where_it_stopped(hub: Hub) -> None:
    hub.faults.cuts = 2
    assert pull().read_bytes() == CONTENT
    assert hub.ranges == [None, "bytes=1000-", "bytes=2000-"]
    assert hub.sent == len(CONTENT)


def test_tries_that_bring_something_are_not_counted(hub: Hub) -> None:
    hub.faults.cuts = 10
    assert pull().read_bytes() == CONTENT
    assert hub.sent == len(CONTENT)


def test_a_hub_that_sends_nothing_is_given_up_and_what_came_is_kept_for_the_next_time(hub: Hub) -> None:
    hub.faults.cuts, hub.faults.cut_after = 1, 3000

    def send_no_more(text: str, share: float | None) -> None:
        if share:
            hub.faults.busy_sending = 99

    with pytest.raises(ModelError, match="busy") as caught:
        fetch(FILE, on_progress=send_no_more)
    assert "goes on where it stopped" in caught.value.hint
    assert names() == [part().name]
    assert part().read_bytes() == CONTENT[:3000]
    hub.faults.busy_sending, hub.sent = 0, 0
    assert pull().read_bytes() == CONTENT
    assert hub.ranges[-1] == "bytes=3000-"
    assert hub.sent == len(CONTENT) - 3000
    assert names() == ["toy-Q4_0.gguf", "toy-Q4_0.gguf.json"]


def test_a_part_of_another_version_is_not_gone_on_with(hub: Hub) -> None:
    hub.faults.busy_sending = 99
    failure()
    part().write_bytes(CONTENT[:5000])
    hub.add(REPO, FILE.file, OTHER)
    hub.faults.busy_sending = 0
    assert pull().read_bytes() == OTHER
    assert names() == ["toy-Q4_0.gguf", "toy-Q4_0.gguf.json"], "the part of the other version is gone"


@pytest.mark.parametrize("garbage", [b"x" * 4000, CONTENT + b"more", CONTENT[:-1] + b"x"])
def test_a_damaged_part_never_becomes_the_file(hub: Hub, garbage: bytes) -> None:
    hub.faults.busy_sending = 99
    failure()
    part().write_bytes(garbage)
    hub.faults.busy_sending = 0
    if len(garbage) <= len(CONTENT):
        assert "damaged" in failure().message
        assert names() == []
    assert pull().read_bytes() == CONTENT


def test_a_part_that_is_whole_costs_no_bytes(hub: Hub) -> None:
    hub.faults.busy_sending = 99
    failure()
    part().write_bytes(CONTENT)
    assert pull().read_bytes() == CONTENT
    assert hub.sent == 0


def test_a_hub_that_only_sends_whole_files_starts_over(hub: Hub) -> None:
    hub.faults.cuts, hub.faults.ignores_range = 1, True
    shares: list[float] = []
    assert fetch(FILE, on_progress=lambda _, share: shares.append(share or 0)).read_bytes() == CONTENT
    assert hub.sent == len(CONTENT) + 1000
    assert shares[-1] == max(shares) == 1.0


@pytest.mark.parametrize("cuts", [0, 1])
@pytest.mark.parametrize("tells_no_length", [False, True])
@pytest.mark.parametrize("length", [500, 10_000, 12_000])
def test_another_length_than_the_hub_says_is_refused(hub: Hub, length: int, tells_no_length: bool, cuts: int) -> None:
    hub.faults.sends, hub.faults.tells_no_length, hub.faults.cuts = (CONTENT * 2)[:length], tells_no_length, cuts
    error = failure()
    assert FILE.file in error.message
    if not tells_no_length or length > len(CONTENT):
        assert f"{len(CONTENT)}" in error.message
    assert not place_of(FILE).exists()
    hub.faults.sends = None
    assert pull().read_bytes() == CONTENT


def test_a_hub_that_always_stops_in_the_middle_is_given_up(hub: Hub) -> None:
    hub.faults.sends, hub.faults.tells_no_length, hub.faults.ignores_range = CONTENT[:500], True, True
    assert "stopped in the middle" in failure().message
    assert len(hub.ranges) == 1 + len(transfers.PAUSES)


def test_other_bytes_than_the_hub_says_are_thrown_away(hub: Hub) -> None:
    hub.faults.sends = OTHER
    error = failure()
    assert "SHA-256" in error.message
    assert "again" in error.hint
    assert names() == []


def test_two_downloads_at_once_fetch_a_file_once(hub: Hub) -> None:
    hub.hold.clear()
    told: list[str] = []
    began, waits = threading.Event(), threading.Event()
    first = threading.Thread(target=fetch, args=(FILE,), kwargs={"on_progress": lambda *_: began.set()})
    first.start()
    assert began.wait(10)

    def tell(text: str, share: float | None) -> None:
        told.append(text)
        waits.set()

    other = threading.Thread(target=fetch, args=(FILE,), kwargs={"on_progress": tell})
    other.start()
    assert waits.wait(10)
    hub.hold.set()
    first.join()
    other.join()
    assert "waiting for another download" in told[0]
    assert place_of(FILE).read_bytes() == CONTENT
    assert hub.sent == len(CONTENT)


SCRIPT = """
import sys
from specdec_cli.catalog import HubFile
from specdec_cli.downloads import fetch, transfers
from specdec_cli.errors import ModelError
try:
    fetch(HubFile(sys.argv[1], sys.argv[2]), on_progress=lambda text, share: print(text, share, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
except ModelError as error:
    sys.exit(f"error: {error.message}")
"""


def _process(hub: Hub, home: Path, repo: str = REPO) -> subprocess.Popen[str]:
    environment = os.environ | {"HF_ENDPOINT": hub.endpoint, "XDG_DATA_HOME": str(home), "HF_HOME": str(home / "hf")}
    command = [sys.executable, "-c", SCRIPT, repo, FILE.file]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_in_a_process_of_its_own_nothing_but_one_line_is_on_stderr(hub: Hub, tmp_path: Path) -> None:
    hub.faults.warns = True
    with _process(hub, tmp_path) as good, _process(hub, tmp_path, "nobody/nothing") as bad:
        _, silence = good.communicate(timeout=60)
        _, complaint = bad.communicate(timeout=60)
    assert (good.returncode, silence) == (0, "")
    assert bad.returncode == 1
    assert complaint == "error: 127.0.0.1 has no repository nobody/nothing, or a private one\n"
    assert (tmp_path / "specdec" / "models" / REPO / FILE.file).read_bytes() == CONTENT
    assert all("/resolve/" in asked for asked in hub.asked), "nothing else is told to the hub"


def test_ctrl_c_leaves_a_part_that_the_next_run_goes_on_with(hub: Hub, tmp_path: Path) -> None:
    hub.hold.clear()
    hub.hold_after = 2000
    folder = tmp_path / "specdec" / "models" / REPO
    with _process(hub, tmp_path) as stopped:
        assert stopped.stdout is not None
        next(line for line in stopped.stdout if float(line.split()[-1]) > 0.15)
        stopped.send_signal(signal.SIGINT)
        _, complaint = stopped.communicate(timeout=60)
    assert (stopped.returncode, complaint) == (130, "")
    assert [path.stat().st_size for path in folder.glob("*.part")] == [2000]
    assert not (folder / FILE.file).exists()
    hub.hold.set()
    with _process(hub, tmp_path) as again:
        again.communicate(timeout=60)
    assert hub.ranges == [None, "bytes=2000-"]
    assert (folder / FILE.file).read_bytes() == CONTENT
