"""A tuning from the loading of the pair to what is told and written."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from specdec_cli.bench.prompts import built_in
from specdec_cli.catalog import Pair
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from specdec_cli.limits import DEFAULT_RULE
from specdec_cli.llama import library
from specdec_cli.llama.devices import usable_cpus
from specdec_cli.llama.processor import this_machine
from specdec_cli.pairs.writing import to_toml
from specdec_cli.render import to_progress
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from specdec_cli.status import StatusLine
from specdec_cli.telling import last_words, open_session
from specdec_cli.terminal import Terminal
from specdec_cli.tune.budget import Budget, Clock
from specdec_cli.tune.finding import Finding
from specdec_cli.tune.organiser import Organiser, Tell
from specdec_cli.tune.report import to_json, to_report
from specdec_cli.tune.saving import Place, to_keys
from specdec_cli.tune.setting import Setting
from specdec_cli.tune.track import Track
from specdec_cli.tune.tuning import Tuning

STAGES_OF: Final = {"threads": "threads", "draft_threads": "draft threads", "batch_size": "batch size"}
"""Options that are not raced if the user gives them, and the stages that would."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to tune. `place` is None where nothing is to be kept, and nothing is written on a `dry_run`."""

    pair: Pair
    settings: ModelSettings
    place: Place | None
    time_limit: float
    dry_run: bool
    json: bool
    verbose: bool


def check_tunable(pair: Pair) -> None:
    """Refuse a pair that nobody drafts for.

    Raises:
        UsageError: it is one.
    """
    if not pair.drafters:
        raise UsageError("there is nothing to tune without a draft", hint="-d lookup needs no second model")


def tune(order: Order, terminal: Terminal, *, clock: Clock = time.monotonic) -> int:
    """Tune, tell and keep; the exit code.

    Raises:
        SpecdecError: the pair cannot be used, or the result cannot be written, which is told all the same.
        KeyboardInterrupt: Ctrl-C before anything was raced.
    """
    budget, status = Budget(clock, clock() + order.time_limit), StatusLine(terminal, hidden=order.verbose)
    library.show_log(terminal.log if order.verbose else None)
    bare = Pair(order.pair.target, order.pair.draft, name=order.pair.name, placing=order.pair.placing)
    with last_words(terminal, status), open_session(bare, order.settings, status) as session:

        def tell(stage: str, left: float) -> None:
            text = to_progress(f"tuning: {stage}", 1 - left / order.time_limit)
            status.show_loading(f"{text} · at most {left:.0f} s left")

        finding = _tuning(order, session, budget, tell).find()
    _tell_and_keep(order, finding, terminal)
    return EXIT_INTERRUPTED if finding.interrupted else EXIT_OK


def _tuning(order: Order, session: Session, budget: Budget, tell: Tell) -> Tuning:
    held, given = session.settings, order.settings
    assert held.threads is not None
    assert held.draft_threads is not None
    assert held.batch_size is not None
    fixed = {stage for option, stage in STAGES_OF.items() if getattr(given, option) is not None}
    # the coupled rule promises a text that no draft changes, which no other rule makes up for by its speed
    rule = order.pair.rule if order.pair.rule == "coupled" else DEFAULT_RULE
    start = Setting(session.pair.drafters, held.threads, held.draft_threads, rule=rule, batch_size=held.batch_size)
    fixed |= {"rule"} if rule == "coupled" else set()
    return Tuning(Track(session, built_in()), Organiser(budget, fixed, tell), start, usable_cpus())


def _tell_and_keep(order: Order, finding: Finding, terminal: Terminal) -> None:
    machine, today = this_machine(), datetime.date.today().isoformat()
    keys = None
    if finding.verdict != "undecided":
        placing = order.settings.placing.over(order.pair.placing)
        keys = to_keys(finding, order.pair.drafters, usable_cpus(), placing, date=today, machine=machine)
    place = order.place if keys is not None else None
    failure = None if place is None or keys is None or order.dry_run else _save(place, keys)
    saved = place is not None and failure is None and not order.dry_run
    if order.json:
        where = str(place.path) if place is not None and saved else None
        terminal.write_text(to_json(finding, pair=order.pair.name, machine=machine, keys=keys, saved=where))
    else:
        terminal.write_report(to_report(finding), indent=2)
    if failure is not None:
        raise failure
    if place is not None and keys is not None:
        _say_where(place, keys, terminal, saved=saved, shown=order.json)


def _save(place: Place, keys: Mapping[str, Any]) -> UsageError | None:
    """Write; what stands in the way, if something does, for what was measured is told first."""
    try:
        place.save(keys)
    except UsageError as error:
        return error
    return None


def _say_where(place: Place, keys: Mapping[str, Any], terminal: Terminal, *, saved: bool, shown: bool) -> None:
    """Where it is written, or would be, with the lines unless they are `shown` already."""
    if saved:
        terminal.notice(f'"{place.name}" in {place.path} says so now')
        return
    terminal.notice(f'nothing is written; "{place.name}" in {place.path} would be as shown')
    if not shown:
        terminal.write_text("\n" + to_toml(place.name, place.entry_with(keys)))
