"""A model hub on this machine: it answers as the real one does where specdec asks, and fails where it is told to.

Files are described under `/OWNER/NAME/resolve/REVISION/FILE` and sent by a second server, another origin, as large
files are. What is asked was read in the sources of huggingface_hub 1.0 and 2.4.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import pytest
from huggingface_hub import constants

COMMIT = "c0ffee" * 6 + "abcd"
OLDER = "01dbee" * 6 + "1234"
ADDRESS = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")


@dataclass
class Faults:
    """What goes wrong; each count goes down whenever it does."""

    busy: int = 0
    """Requests for metadata that are told to come later."""
    busy_sending: int = 0
    cuts: int = 0
    """Connections that end `cut_after` bytes after they should have begun to send."""
    cut_after: int = 1000
    ignores_range: bool = False
    tells_no_length: bool = False
    sends: bytes | None = None
    """Bytes that are sent in the place of every file."""
    tells_nothing: bool = False
    """Metadata lacks all that only the hub says."""
    warns: bool = False


@dataclass
class Hub:
    """Repositories, faults, and all that was asked."""

    repositories: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    """By name, then by revision, the files."""
    stored: dict[str, bytes] = field(default_factory=dict)
    """By path, the files as they are sent."""
    gated: set[str] = field(default_factory=set)
    private: dict[str, str] = field(default_factory=dict)
    """Repository to the token that opens it."""
    renamed: dict[str, str] = field(default_factory=dict)
    location: Literal["absolute", "relative", "none"] = "absolute"
    faults: Faults = field(default_factory=Faults)
    asked: list[str] = field(default_factory=list)
    """Method and path of each request to the hub itself."""
    ranges: list[str | None] = field(default_factory=list)
    """Of each request for bytes."""
    sent: int = 0
    """Bytes of files that were sent."""
    leaked: bool = False
    """Whether a token came to the origin that only sends files."""
    endpoint: str = ""
    storage: str = ""
    hold: threading.Event = field(default_factory=threading.Event)
    """Cleared, no answer goes on after `hold_after` bytes of a file, until it is set."""
    hold_after: int = 0
    commits: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})
    """What revisions stand for; commits stand for themselves."""

    def add(self, repo: str, file: str, content: bytes, *revisions: str) -> None:
        """Put `file` into `repo`, at `revisions`, or on the main branch and its commit."""
        for revision in revisions or ("main", COMMIT):
            self.repositories.setdefault(repo, {}).setdefault(revision, {})[file] = content
        self.stored[stored_at(content)] = content


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub that answers at `endpoint` until the end of the block."""
    hub = Hub()
    hub.hold.set()
    servers = [_Server(("127.0.0.1", 0), handler, hub) for handler in (_Metadata, _Storage)]
    hub.endpoint, hub.storage = (
        f"http://{name}:{server.server_port}" for name, server in zip(("127.0.0.1", "localhost"), servers, strict=True)
    )
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        hub.hold.set()
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()


def ask_only(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `endpoint` the hub of this process, as HF_ENDPOINT does where huggingface_hub is not imported yet."""
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], hub: Hub) -> None:
        super().__init__(address, handler)
        self.hub = hub

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked may go away in the middle of the answer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        return self.server.hub

    def log_message(self, format: str, *values: object) -> None:
        """Tests read what is on stderr."""

    def answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_file(self, content: bytes, headers: dict[str, str]) -> None:
        """Send `content`, or the rest of it that is asked for, with the faults of the hub."""
        faults, asked = self.hub.faults, self.headers["Range"]
        self.hub.ranges.append(asked)
        content = content if faults.sends is None else faults.sends
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and not faults.ignores_range else 0
        if start >= len(content):
            self.answer(416, {"Content-Range": f"bytes */{len(content)}"})
            return
        if faults.busy_sending:
            faults.busy_sending -= 1
            self.answer(503, {})
            return
        self.send_response(206 if start else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if faults.tells_no_length:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.send_bytes(content[start:])

    def send_bytes(self, content: bytes) -> None:
        faults = self.hub.faults
        if faults.cuts:
            faults.cuts -= 1
            content = content[: faults.cut_after]
            self.close_connection = True
        for begin in range(0, len(content), 1000):
            if begin >= self.hub.hold_after:
                self.hub.hold.wait()
            piece = content[begin : begin + 1000]
            self.wfile.write(piece)
            self.hub.sent += len(piece)
        self.close_connection = self.close_connection or faults.tells_no_length


class _Metadata(_Handler):
    """The hub itself."""

    def do_HEAD(self) -> None:
        self._resolve()

    def do_GET(self) -> None:
        self._resolve()

    def _resolve(self) -> None:
        hub, asked = self.hub, ADDRESS.fullmatch(self.path)
        hub.asked.append(f"{self.command} {self.path}")
        if self.path in hub.stored:
            self._send_described(hub.stored[self.path], COMMIT)
        elif asked is None:
            self.answer(404, {})
        elif new := hub.renamed.get(asked["repo"]):
            self.answer(307, {"Location": self.path.replace(asked["repo"], new)})
        elif hub.faults.busy and self.command == "HEAD":
            hub.faults.busy -= 1
            self.answer(503, {})
        elif refusal := self._refusal(asked["repo"], asked["revision"], asked["file"]):
            status, code = refusal
            self.answer(status, {"X-Error-Code": code, "X-Error-Message": f"{code}, as the hub says it"})
        else:
            self._found(hub.repositories[asked["repo"]][asked["revision"]][asked["file"]], asked["revision"])

    def _refusal(self, repo: str, revision: str, file: str) -> tuple[int, str] | None:
        hub = self.hub
        token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
        if hub.private.get(repo, token) != token or repo not in hub.repositories:
            return (404 if token else 401), "RepoNotFound"
        if repo in hub.gated:
            return 403, "GatedRepo"
        if revision not in hub.repositories[repo]:
            return 404, "RevisionNotFound"
        return None if file in hub.repositories[repo][revision] else (404, "EntryNotFound")

    def _found(self, content: bytes, revision: str) -> None:
        if self.hub.location == "none":
            self._send_described(content, revision)
        else:
            origin = "" if self.hub.location == "relative" else self.hub.storage
            self.answer(302, self._description(content, revision) | {"Location": origin + stored_at(content)})

    def _send_described(self, content: bytes, revision: str) -> None:
        description = self._description(content, revision)
        if self.command == "HEAD":
            self.answer(200, description | {"Content-Length": str(len(content))})
        else:
            self.send_file(content, description)

    def _description(self, content: bytes, revision: str) -> dict[str, str]:
        warning = {"X-HF-Warning": "storage; this repository will move"} if self.hub.faults.warns else {}
        if self.hub.faults.tells_nothing:
            return warning
        return warning | {
            "X-Repo-Commit": self.hub.commits.get(revision, revision),
            "X-Linked-Etag": f'"{sha256(content).hexdigest()}"',
            "X-Linked-Size": str(len(content)),
            "X-Xet-Hash": "f" * 64,
        }


class _Storage(_Handler):
    """Where large files are; it knows no users."""

    def do_GET(self) -> None:
        self.hub.leaked = self.hub.leaked or "Authorization" in self.headers
        if content := self.hub.stored.get(self.path):
            self.send_file(content, {})
        else:
            self.answer(404, {})


def stored_at(content: bytes) -> str:
    """The path under which a file is sent."""
    return f"/stored/{sha256(content).hexdigest()}"
