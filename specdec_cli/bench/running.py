"""One answer, produced and timed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from specdec_cli.core.decode import Round
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.generation import FinishReason, Request
from specdec_cli.session import Session
from specdec_cli.tracing import Tracer

NO_TRACE: Final = Tracer()


@dataclass(frozen=True, slots=True)
class Run:
    """An answer that ended: what was counted, the seconds of its parts, and by the clock without the prompt's."""

    tokens: tuple[int, ...]
    rounds: tuple[Round, ...]
    seconds: float
    counters: Counters
    timing: Timing
    finish_reason: FinishReason

    @property
    def speed(self) -> float:
        """Tokens a second, the prompt not counted; 0 without any."""
        return len(self.tokens) / self.seconds if self.tokens else 0.0


def run(
    session: Session,
    prompt: Sequence[int],
    request: Request,
    *,
    tracer: Tracer = NO_TRACE,
    label: Mapping[str, Any] | None = None,
) -> Run:
    """Answer `prompt`; what the caches hold of it from earlier answers is not read again. `label` is for the `tracer`.

    Raises:
        SpecdecError: as `Session.generate` and `Generation` do.
        KeyboardInterrupt: Ctrl-C; what was said until then is lost.
    """
    generation = session.generate(prompt, request, tracer.watch)
    tracer.begin(generation, session, label)
    started = time.perf_counter()
    for _ in generation:
        pass
    seconds = time.perf_counter() - started - generation.timing.prompt
    tracer.end(generation)
    reason = generation.finish_reason
    if reason == "interrupted":
        raise KeyboardInterrupt
    assert reason is not None
    return Run(
        tuple(generation.tokens), tuple(generation.rounds), seconds, generation.counters, generation.timing, reason
    )
