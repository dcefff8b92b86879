"""At temperature 1 many short continuations follow the target's own law, with each rule and without a draft.

Every token is held to the exact law of its place, and what leads to it too: drafted tokens to q, what is kept to
min(1, p / q), what replaces a rejected token to the residual. Those see a fault in far fewer samples than the tokens
that come out, which hide it behind the luck of drafting. First tokens are also counted where a fault must show: on the
draft's side, the tokens that it likes better than the target does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from specdec_cli.audit.answers import Answers
from specdec_cli.audit.continuations import TOKENS, Continuations, Place
from specdec_cli.audit.evidence import POWER, Evidence
from specdec_cli.audit.outcome import Outcome
from specdec_cli.limits import DEFAULT_RULE

NAME: Final = "sampling"
WAYS: Final = ("none", "block", "token", "block", "coupled")
"""Plain decoding, and the rules; the default one, which most people use, twice as often."""
REPEATS: Final = 2
"""Answers of each way before the prompt changes, whose evaluation they share."""
FALSE_ALARM: Final = 1e-4
"""Of all statistics together: how often a right sampler fails this check."""
KINDS: Final = {
    "first": "first tokens on the draft's side",
    "tokens": "all tokens",
    "drafts": "drafted tokens",
    "kept": "what was kept",
    "last": "tokens that end a round",
}


class Sampling:
    """Up to `samples` continuations of `prompts`, in turn."""

    name = NAME

    def __init__(self, answers: Answers, prompts: Sequence[Sequence[int]], samples: int) -> None:
        self._answers = answers
        self._places = [Place(prompt) for prompt in prompts]
        self._samples = samples
        self._drawn = 0
        self._seen = {way: Continuations() for way in WAYS}

    def work(self) -> Iterator[float]:
        """See `Check.work`."""
        while self._drawn < self._samples:
            for place in self._places:
                place.prepare(self._answers)
                for way in WAYS * REPEATS:
                    self._seen[way].draw(self._answers, place, way, turn=self._drawn)
                    self._drawn += 1
                yield self._drawn / self._samples

    def outcome(self) -> Outcome | None:
        """See `Check.outcome`."""
        if not self._drawn:
            return None
        bets = self._bets()
        alarm = FALSE_ALARM / max(len(bets), 1)
        guilty = [f"{KINDS[kind]} ({way})" for (way, kind), each in bets.items() if each.convicts(alarm)]
        guilty += ["luck that came twice"] * self._repeated
        first = bets.get((DEFAULT_RULE, "first"), Evidence()).smallest_bias(alarm)
        figures = {
            "samples": self._drawn,
            "tokens": TOKENS,
            "drafted": sum(each.drafted for each in self._seen.values()),
            "false_alarm": FALSE_ALARM,
            "power": POWER,
            "smallest_bias": first,
            "repeated_luck": self._repeated,
            "offset": max(each.offset for each in self._seen.values()),
            "statistics": [_to_json(way, kind, each, alarm) for (way, kind), each in bets.items()],
        }
        return Outcome(NAME, not guilty, self._words(guilty, first), figures)

    @property
    def _repeated(self) -> bool:
        """Whether any two decisions of what should be independent were made with the same number."""
        draws = [draw for each in self._seen.values() for draw in each.draws]
        return len(set(draws)) < len(draws)

    def _bets(self) -> dict[tuple[str, str], Evidence]:
        return {
            (way, kind): each for way, seen in self._seen.items() for kind, each in seen.evidence.items() if each.count
        }

    def _words(self, guilty: Sequence[str], first: float | None) -> str:
        drafted = sum(each.drafted for each in self._seen.values())
        text = f"{self._drawn} continuations of {TOKENS} tokens ({drafted} drafted)"
        if guilty:
            return f"{text} do not follow the target's law: {', '.join(guilty)}"
        text += f" follow the target's law (a false alarm in {1 / FALSE_ALARM:,.0f} audits)"
        if not drafted:
            return f"{text}; the draft never guessed, so that nothing of it was tested"
        if first is None:
            return f"{text}; too few to say what bias would have been seen"
        return f"{text}; a first token that leans to the draft by {first:.2g} would have been seen ({POWER:.0%})"


def _to_json(way: str, kind: str, evidence: Evidence, alarm: float) -> dict[str, Any]:
    return {
        "rule": way,
        "of": kind,
        "observations": evidence.count,
        "evidence": evidence.most if math.isfinite(evidence.most) else None,
        "limit": -math.log(alarm),
        "smallest_bias": evidence.smallest_bias(alarm),
    }
