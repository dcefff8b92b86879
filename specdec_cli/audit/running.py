"""An audit from loading the pair to its report on a terminal or in a pipe."""

from __future__ import annotations

import secrets

from specdec_cli.audit.auditing import Audit, Extent, audit, check_auditable
from specdec_cli.audit.report import WIDEST, to_json, to_words
from specdec_cli.catalog import Pair
from specdec_cli.llama import library
from specdec_cli.render import to_progress
from specdec_cli.settings import ModelSettings
from specdec_cli.status import StatusLine
from specdec_cli.telling import last_words, name_draft, name_weights, open_session
from specdec_cli.terminal import Terminal


def run_audit(
    pair: Pair,
    settings: ModelSettings,
    terminal: Terminal,
    *,
    seed: int | None,
    seconds: float,
    json: bool,
    verbose: bool,
) -> Audit:
    """Load `pair`, audit it and report; `seed` None draws one.

    Raises:
        SpecdecError: the pair cannot be used.
        PipeClosedError: nobody reads the report any more.
    """
    check_auditable(pair)
    status = StatusLine(terminal, hidden=verbose)
    library.show_log(terminal.log if verbose else None)
    with last_words(terminal, status), open_session(pair, settings, status) as session:
        found = audit(
            session,
            secrets.randbelow(2**32) if seed is None else seed,
            Extent(seconds=seconds),
            lambda task, share: status.show_loading(to_progress(task, share)),
        )
        status.close()
        tell = to_json if json else to_words
        told = tell(found, target=name_weights(session.target), draft=name_draft(session))
        terminal.write_text(told) if json else terminal.write_report(told, indent=WIDEST + 2)
    return found
