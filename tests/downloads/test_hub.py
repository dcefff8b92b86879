from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import close_session, constants

from specdec_cli.catalog import HubFile, place_of
from tests.downloads.fetched import CONTENT, FILE, HASH, OTHER, REPO, failure, pull
from tests.hub_server import COMMIT, OLDER, Hub, ask_only


@pytest.mark.parametrize("location", ["absolute", "relative", "none"])
def test_files_are_found_wherever_the_hub_sends_us(hub: Hub, location: Any) -> None:
    hub.location = location
    assert pull().read_bytes() == CONTENT


def test_a_repository_that_was_renamed_is_found(hub: Hub) -> None:
    hub.renamed["old/name"] = REPO
    assert pull(HubFile("old/name", FILE.file)).read_bytes() == CONTENT


def test_the_pinned_revision_is_what_comes(hub: Hub) -> None:
    hub.add(REPO, FILE.file, OTHER, OLDER, "v1%2Fbeta")
    hub.commits["v1%2Fbeta"] = OLDER
    for revision in (OLDER, "v1/beta"):
        assert pull(HubFile(REPO, FILE.file, revision)).read_bytes() == OTHER
    assert pull(HubFile(REPO, FILE.file, COMMIT)).read_bytes() == CONTENT


def test_bytes_are_asked_of_the_commit_so_that_the_branch_may_move_meanwhile(hub: Hub) -> None:
    pull()
    assert hub.asked == [
        f"HEAD /{REPO}/resolve/main/{FILE.file}",
        f"GET /{REPO}/resolve/{COMMIT}/{FILE.file}",
    ]


def test_a_file_with_another_hash_than_the_pinned_one_is_not_even_begun(hub: Hub) -> None:
    error = failure(HubFile(REPO, FILE.file, None, "0" * 64))
    assert HASH in error.message
    assert "0" * 64 in error.message
    assert hub.sent == 0


def test_a_hub_that_is_busy_for_a_moment_is_asked_again(hub: Hub) -> None:
    hub.faults.busy, hub.faults.busy_sending = 2, 2
    assert pull().read_bytes() == CONTENT


def test_a_hub_that_stays_busy_is_told_in_one_line(hub: Hub) -> None:
    hub.faults.busy = 99
    assert "503" in failure().message


def test_a_missing_repository_file_and_revision_are_told_apart(hub: Hub) -> None:
    assert "no repository nobody/nothing" in failure(HubFile("nobody/nothing", FILE.file)).message
    assert f"{REPO} has no file none.gguf" in failure(HubFile(REPO, "none.gguf")).message
    assert f"{REPO} has no revision v9" in failure(HubFile(REPO, FILE.file, "v9")).message
    assert not place_of(FILE).parent.exists(), "nothing is left of what never was"


def test_a_gated_repository_says_where_to_accept_its_terms(hub: Hub) -> None:
    hub.gated.add(REPO)
    error = failure()
    assert f"{REPO} is gated" in error.message
    assert f"{hub.endpoint}/{REPO}" in error.hint


def test_a_private_repository_opens_with_the_usual_token_which_goes_nowhere_else(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.private[REPO] = "hf_secret"
    error = failure()
    assert "private" in error.message
    assert "HF_TOKEN" in error.hint
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert "hf_wrong" not in failure().message
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert pull().read_bytes() == CONTENT
    assert hub.leaked is False


def test_the_login_of_the_hub_counts_too(hub: Hub) -> None:
    hub.private[REPO] = "hf_secret"
    Path(constants.HF_TOKEN_PATH).write_text("hf_secret\n")
    assert pull().read_bytes() == CONTENT


def test_a_token_that_cannot_be_sent_is_told_without_showing_it(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secrét")
    error = failure()
    assert "secr" not in error.message
    assert "HF_TOKEN" in error.hint


def test_offline_is_one_line(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in failure().message


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "nonsense"])
def test_a_hub_that_cannot_be_reached_is_one_line(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_only(endpoint, monkeypatch)
    error = failure()
    assert endpoint.removeprefix("http://").partition(":")[0] in error.message
    close_session()


def test_a_server_that_is_no_hub_is_one_line(hub: Hub) -> None:
    hub.location, hub.faults.tells_nothing = "none", True
    assert "does not say" in failure().message
    assert hub.sent == 0


@pytest.mark.parametrize("repo", ["a/b/c", "no--good/name", "owner/na me", ""])
def test_what_is_no_name_of_a_repository_is_one_line(hub: Hub, repo: str) -> None:
    assert repo in failure(HubFile(repo, FILE.file)).message
