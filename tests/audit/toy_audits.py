"""Audits of toys: how much of one a test needs, and the sessions that they run on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from specdec_cli.audit.auditing import Audit, Extent, audit
from specdec_cli.catalog import Pair
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from tests.engine import Notices

SHORT: Final = Extent(seconds=float("inf"), prompts=2, tokens=8, samples=20)


@contextmanager
def session_of(pair: Pair) -> Iterator[Session]:
    """A session of one thread."""
    with Session(pair, ModelSettings(threads=1), Notices().listener) as session:
        yield session


def audited(pair: Pair, extent: Extent = SHORT, **more: Any) -> Audit:
    """The audit of `pair`; how much of it there is does not depend on a clock."""
    with session_of(pair) as session:
        return audit(session, more.pop("seed", 1), extent, more.pop("tell", lambda *_: None), **more)


def failed(found: Audit) -> set[str]:
    """Names of the checks that failed."""
    return {each.name for each in found.outcomes if not each.passed}
