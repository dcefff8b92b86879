"""The model hub: what a file of a repository is, and its bytes from any position on.

The only room that imports huggingface_hub, which knows the address, the token and the errors of the hub. Its own
downloads are not used: they do not go on with what an earlier process left. All failures are ModelErrors.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from importlib.metadata import version
from typing import Final
from urllib.parse import urlsplit

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    get_session,
    hf_hub_url,
    hf_raise_for_status,
    logging,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import WeakFileLock, build_hf_headers

from specdec_cli.downloads.provenance import Provenance
from specdec_cli.errors import ModelError

__all__ = ["BusyError", "LostError", "WeakFileLock", "describe", "read"]

SHA256: Final = re.compile("[0-9a-f]{64}")
LIBRARY: Final = {"library_name": "specdec-cli", "library_version": version("specdec-cli")}
PARTIAL, BEYOND_THE_END = 206, 416
BUSY: Final = (408, 429, 500, 502, 503, 504)
LOGIN: Final = "log in (hf auth login), or set HF_TOKEN to a token that may read it"
AGAIN: Final = "run the same again: it goes on where it stopped"
FAILURES: Final = (HfHubHTTPError.__bases__[0], OSError, ValueError)
"""What a request can end with. The first is the base of all errors of the HTTP library, which is another in each major
version of huggingface_hub; the last is a name, an address or a token that cannot be sent."""

logging.set_verbosity(logging.CRITICAL)  # all that it warns of becomes an error here, or is of no use to people
constants.HF_HUB_DISABLE_TELEMETRY = True  # it would ask the hub how to recognise the program that calls us


class LostError(ModelError):
    """The hub cannot be reached, or stopped in the middle: another try may help."""


class BusyError(LostError):
    """The hub asks to come again later."""


def describe(repo: str, file: str, revision: str | None) -> Provenance:
    """What `file` of `repo` is, at `revision` or on the main branch.

    Raises:
        LostError: another try may help.
        ModelError: there is no such file for this user, or nothing that could be checked.
    """
    try:
        found = get_hf_file_metadata(hf_hub_url(repo, file, revision=revision), **LIBRARY)
    except FAILURES as error:
        raise _explained(error, repo, file, revision) from None
    if not found.commit_hash or not found.size or not SHA256.fullmatch(found.etag or ""):
        raise ModelError(
            f"{_host()} does not say the commit, the size and the SHA-256 of {file}",
            hint="only files that the hub keeps as LFS or Xet can be checked; is HF_ENDPOINT or a proxy in between?",
        )
    return Provenance(repo, file, revision, found.commit_hash, found.etag, found.size)


def read(wanted: Provenance, start: int) -> Generator[tuple[int, bytes], None, None]:
    """The bytes of `wanted` with their positions, from `start` on, or from 0 if the hub only sends the whole file.

    Raises:
        LostError: see `describe`; what came is good.
        ModelError: the file is gone, may not be read any more, or has another length than it should.
    """
    wishes = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    try:
        url = hf_hub_url(wanted.repo, wanted.file, revision=wanted.commit)
        headers = build_hf_headers(**LIBRARY) | wishes
        with get_session().stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as response:
            if response.status_code != BEYOND_THE_END:
                hf_raise_for_status(response)
            position = start if response.status_code == PARTIAL else 0
            _check_length(wanted, response.headers)
            for chunk in response.iter_bytes():
                if position + len(chunk) > wanted.size:
                    raise _wrong_length(wanted, position + len(chunk))
                yield position, chunk
                position += len(chunk)
            if position < wanted.size:
                raise LostError(f"{_host()} stopped in the middle of {wanted.file}", hint=AGAIN)
    except FAILURES as error:
        raise _explained(error, wanted.repo, wanted.file, wanted.commit) from None


def _check_length(wanted: Provenance, headers: Mapping[str, str]) -> None:
    """Compare what is about to come with what `wanted` promised; a length that is not told cannot be compared."""
    told = headers.get("Content-Range", "").rpartition("/")[2] or headers.get("Content-Length", "")
    if told.isdigit() and int(told) != wanted.size:
        raise _wrong_length(wanted, int(told))


def _wrong_length(wanted: Provenance, length: int) -> ModelError:
    return ModelError(
        f"{_host()} sends {length} bytes for {wanted.file}, which has {wanted.size}",
        hint="try again later: it was changed just now, or a proxy is in between",
    )


def _explained(error: Exception, repo: str, file: str, revision: str | None) -> ModelError:
    """What `error` means to somebody who wants `file`."""
    page, host, at = f"{constants.ENDPOINT}/{repo}", _host(), f" at revision {revision}" if revision else ""
    meanings: tuple[tuple[type[Exception], str, str], ...] = (
        (OfflineModeIsEnabled, f"{file} cannot be downloaded while HF_HUB_OFFLINE is set", "unset HF_HUB_OFFLINE"),
        (HFValidationError, f'"{repo}" is no name of a hub repository', "write OWNER/NAME"),
        (GatedRepoError, f"{repo} is gated: it asks you to accept its terms", f"accept them at {page}, then {LOGIN}"),
        (RepositoryNotFoundError, f"{host} has no repository {repo}, or a private one", f"check the name, or {LOGIN}"),
        (RevisionNotFoundError, f"{repo} has no revision {revision}", f"revisions: {page}/commits/main"),
        (EntryNotFoundError, f"{repo} has no file {file}{at}", f"files: {page}/tree/{revision or 'main'}"),
    )
    for kind, message, hint in meanings:
        if isinstance(error, kind):
            return ModelError(message, hint=hint)
    if isinstance(error, HfHubHTTPError):
        return _refused(error.response.status_code, repo)
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, ValueError):
        return ModelError(f"{host} cannot be asked: {reason}", hint="look at HF_ENDPOINT and HF_TOKEN")
    return LostError(f"no connection to {host}: {reason}", hint=f"look at the network; then {AGAIN}")


def _refused(status: int, repo: str) -> ModelError:
    if status in (401, 403):
        return ModelError(f"{_host()} does not let this user read {repo} (status {status})", hint=LOGIN)
    if status in BUSY:
        return BusyError(f"{_host()} is busy (status {status})", hint=f"wait a while; then {AGAIN}")
    return ModelError(f"{_host()} refuses {repo} (status {status})", hint="is HF_ENDPOINT, or a proxy, right?")


def _host() -> str:
    endpoint: str = constants.ENDPOINT
    return urlsplit(endpoint).hostname or endpoint
