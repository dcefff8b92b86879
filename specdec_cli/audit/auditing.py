"""All checks of an audit, one after the other, in about the time that there is; the clock never decides inside one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from specdec_cli.audit.answers import Answers
from specdec_cli.audit.caches import CacheCheck
from specdec_cli.audit.coupled import coupled_check
from specdec_cli.audit.greedy import greedy_check
from specdec_cli.audit.outcome import Check, Outcome
from specdec_cli.audit.prompts import PROMPTS
from specdec_cli.audit.sampling import Sampling
from specdec_cli.catalog import Pair
from specdec_cli.errors import UsageError
from specdec_cli.session import Session

SHARES: Final = (0.25, 0.45, 0.55, 1.0)
"""Of the time, when each check ends at the latest; one that needs less leaves the rest to those after it."""
CACHED_PROMPTS: Final = 2


@dataclass(frozen=True, slots=True)
class Extent:
    """How much an audit does at most: `seconds` by the clock, answers of so many `tokens` to `prompts`, `samples`."""

    seconds: float = 60.0
    prompts: int = len(PROMPTS)
    tokens: int = 24
    samples: int = 4000


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found; `interrupted` if Ctrl-C ended it."""

    outcomes: tuple[Outcome, ...]
    seed: int
    seconds: float
    interrupted: bool = False

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong with what was checked."""
        return all(each.passed for each in self.outcomes)


def check_auditable(pair: Pair) -> None:
    """Refuse a pair that nobody drafts for.

    Raises:
        UsageError: it is one.
    """
    if not pair.drafters:
        raise UsageError("this pair has no draft: there is nothing to audit", hint="give one with -d, such as lookup")


def audit(
    session: Session,
    seed: int,
    extent: Extent,
    tell: Callable[[str, float], object],
    clock: Callable[[], float] = time.monotonic,
) -> Audit:
    """Check that speculation changes nothing of what the target of `session` says; `tell` is told how far it is.

    Each check does one piece at least. After Ctrl-C there is what was found until then.

    Raises:
        UsageError: the context is too small.
        ModelError: llama.cpp failed.
    """
    started, interrupted = clock(), False
    checks: Sequence[Check] = ()
    try:
        checks = _to_checks(Answers(session, seed), extent)
        for check, share in zip(checks, SHARES, strict=True):
            _work(check, clock, started + share * extent.seconds, tell)
    except KeyboardInterrupt:
        interrupted = True
    outcomes = (check.outcome() for check in checks)
    return Audit(tuple(each for each in outcomes if each), seed, clock() - started, interrupted)


def _to_checks(answers: Answers, extent: Extent) -> Sequence[Check]:
    prompts = [answers.prompt(text) for text in PROMPTS[: extent.prompts]]
    answers.ask(prompts[0], answers.greedy, max_tokens=1, draft_tokens="auto")  # opens all contexts as big as needed
    return (
        greedy_check(answers, prompts, extent.tokens),
        coupled_check(answers, prompts, extent.tokens),
        CacheCheck(answers, prompts[:CACHED_PROMPTS], extent.tokens),
        Sampling(answers, prompts, extent.samples),
    )


def _work(check: Check, clock: Callable[[], float], end: float, tell: Callable[[str, float], object]) -> None:
    tell(f"checking: {check.name}", 0.0)
    for share in check.work():
        tell(f"checking: {check.name}", share)
        if clock() >= end:
            return
