"""What of a pair holds on this machine, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from specdec_cli.catalog import Pair
from specdec_cli.limits import DEFAULT_RULE
from specdec_cli.llama.devices import usable_cpus
from specdec_cli.llama.processor import this_machine
from specdec_cli.settings import DEFAULT_BATCH, ModelSettings


def as_it_holds_here(pair: Pair, notice: Callable[[str], object]) -> Pair:
    """`pair` without what `specdec tune` found on another machine, of which `notice` is told.

    Rule, temperature and who drafts stay: they are about the models more than about the machine.

    Raises:
        ModelError: llama.cpp does not load.
    """
    found = pair.of_its_machine
    if pair.machine is None or not found or pair.machine == this_machine():
        return pair
    names = ", ".join(found)
    notice(f'"{pair.name}" was tuned on {pair.machine}, so its {names} are ignored here; specdec tune finds others')
    return pair.anywhere()


def to_settings(given: ModelSettings, pair: Pair) -> ModelSettings:
    """What holds: what is `given`, else what the pair says, else the defaults, but for threads of the draft.

    The pair's threads of the draft belong to its threads of the target: other ones are for both.
    """
    of_draft = pair.draft_threads if given.threads is None else None
    return replace(
        given,
        threads=given.threads or pair.threads or usable_cpus(),
        draft_threads=given.draft_threads or of_draft,
        batch_size=given.batch_size or pair.batch_size or DEFAULT_BATCH,
        placing=given.placing.over(pair.placing),
    )


def with_draft_threads(settings: ModelSettings, *, shares_cpu: bool) -> ModelSettings:
    """`settings`, where the draft has as many threads as the target if they take turns on the CPU, else all CPUs."""
    default = settings.threads if shares_cpu else usable_cpus()
    return replace(settings, draft_threads=settings.draft_threads or default)


def to_defaults(pair: Pair) -> dict[str, Any]:
    """What holds for an answer of which nothing else is said: what the pair says, else what holds for all."""
    return {
        "draft_tokens": "auto" if pair.draft_tokens is None else pair.draft_tokens,
        "rule": pair.rule or DEFAULT_RULE,
        "draft_temperature": pair.draft_temperature or "auto",
    }
