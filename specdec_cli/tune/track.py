"""What the races run on: a loaded pair, and the same prompts and seeds for every setting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from specdec_cli.bench.prompts import BenchPrompt
from specdec_cli.bench.running import run
from specdec_cli.core.costs import Costs
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.stats import Counters
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.errors import ModelError
from specdec_cli.generation import Request
from specdec_cli.session import Session
from specdec_cli.tune.setting import Chain, Setting

TOKENS: Final = 32
"""Of a run: so few that many fit the time, so many that an adaptive length has something to go by."""
PROMPT_TOKENS: Final = 256
"""Of a prompt that is timed: it takes seconds on a slow machine."""
GREEDY: Final[dict[str, Any]] = {"temperature": 0}
KINDS: Final = (("code", True), ("questions", False), ("edit", True), ("prose", False))
"""The prompts by what they ask for, and whether they are answered greedily or as the model samples by default."""
FILLER: Final = "The ferry leaves the old harbour at seven, and the bells of the town can be heard across the water. "


class Course(Protocol):
    """Where settings are run; times are by the clock, all else by the settings alone."""

    @property
    def prompts(self) -> int:
        """How many prompts there are."""
        ...

    @property
    def sampled(self) -> tuple[int, ...]:
        """Those that are not answered greedily."""
        ...

    def speed(self, setting: Setting, cell: int) -> float | None:
        """Tokens a second of an answer to prompt `cell` modulo `prompts`; None if it has none."""
        ...

    def prompt_speed(self, setting: Setting, cell: int) -> float | None:
        """Tokens a second of reading a prompt."""
        ...

    def costs(self, setting: Setting) -> Costs | None:
        """What passes cost with the threads of `setting`, if that was measured."""
        ...

    def counters(self, chain: Chain) -> Counters:
        """What was counted of all answers that `chain` drafted for."""
        ...


@dataclass(frozen=True, slots=True)
class _Asked:
    tokens: Sequence[int]
    chain: SamplingChain
    greedy: bool


class Track:
    """A `Course` of a loaded pair."""

    def __init__(self, session: Session, prompts: Sequence[BenchPrompt]) -> None:
        self._session = session
        self._counters: defaultdict[Chain, Counters] = defaultdict(Counters)
        first = {each.kind: each for each in reversed(prompts)}
        self._asked = [self._ask(first[kind], greedy) for kind, greedy in KINDS]

    @property
    def prompts(self) -> int:
        """See `Course`."""
        return len(self._asked)

    @property
    def sampled(self) -> tuple[int, ...]:
        """See `Course`."""
        return tuple(index for index, each in enumerate(self._asked) if not each.greedy)

    def speed(self, setting: Setting, cell: int) -> float | None:
        """See `Course`.

        Raises:
            SpecdecError: there is no answer.
            KeyboardInterrupt: Ctrl-C.
        """
        asked, seed = self._asked[cell % self.prompts], cell // self.prompts
        self._adopt(setting)
        request = Request(
            asked.chain,
            seed,
            draft_tokens=setting.draft_tokens,
            max_tokens=TOKENS,
            rule=setting.rule,
            draft_temperature=setting.draft_temperature,
        )
        done = run(self._session, asked.tokens, request)
        if setting.draft_tokens:
            self._counters[setting.chain].include(done.counters)
        return done.speed or None

    def prompt_speed(self, setting: Setting, cell: int) -> float | None:
        """See `Course`; raises as `speed` does. Every cell has a prompt of its own, for none may be in a cache."""
        self._adopt(setting)
        session = self._session
        text = f"{cell}. {FILLER}" * PROMPT_TOKENS
        room = min(PROMPT_TOKENS, session.context_limit - 1)
        tokens = session.prompt_from_text(text[: 8 * PROMPT_TOKENS])[:room]
        done = run(session, tokens, Request(session.chain(GREEDY), 0, draft_tokens=0, max_tokens=1))
        return len(tokens) / done.timing.prompt if done.timing.prompt else None

    def costs(self, setting: Setting) -> Costs | None:
        """See `Course`."""
        self._adopt(setting)
        return self._session.known_costs()

    def counters(self, chain: Chain) -> Counters:
        """See `Course`."""
        return self._counters[chain]

    def _ask(self, prompt: BenchPrompt, greedy: bool) -> _Asked:
        session = self._session
        assert isinstance(prompt.prompt, str)
        try:
            tokens = session.prompt_from_messages([{"role": "user", "content": prompt.prompt}])
        except ModelError:  # no template that takes it: plain text is what such a model goes on from
            tokens = session.prompt_from_text(prompt.prompt)
        return _Asked(tokens, session.chain(GREEDY if greedy else {}), greedy)

    def _adopt(self, setting: Setting) -> None:
        """Let the session be as `setting` says; its models stay loaded."""
        session, wanted = self._session, (setting.threads, setting.draft_threads, setting.batch_size)
        held = session.settings
        if wanted != (held.threads, held.draft_threads, held.batch_size):
            session.change_threads(*wanted)
        session.pair = replace(session.pair, draft=setting.chain)


def main_source(counters: Counters, setting: Setting) -> str:
    """Who drafted most, as statistics call it."""
    if counters.by_source:
        return max(counters.by_source, key=lambda name: counters.by_source[name][0])
    return ModelDrafter.name if setting.has_model else LookupDrafter.name
