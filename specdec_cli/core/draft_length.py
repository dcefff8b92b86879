"""When a block is long enough. A rule sees the drafted prefix and how sure the drafter is, never the next token."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Final

from specdec_cli.core.costs import Costs
from specdec_cli.core.estimates import DrafterEstimate
from specdec_cli.core.verify import Proposal, Verdict

LONGEST: Final = 16
"""What the adaptive rule drafts at most; costs are measured up to one token more."""
ROUNDS: Final = 60
"""Recent rounds that tell what time is worth."""
PRIOR_ROUNDS: Final = 8
"""How many plain rounds the first belief is worth that time brings no more than plain decoding does."""
FIRST_WORD: Final = 0.6
"""The chance that the first token of all is kept, as a share of what any other's is believed to be: how an answer
begins is the hardest to guess, and where drafting pays only if nearly all is right, one miss would put it off."""
FIRST_WAIT, LONGEST_WAIT = 40, 640
"""Plain rounds until a draft that does not pay is tried again: ever more, as long as it goes on not to pay."""
TRIAL_SHARE: Final = 0.015
"""Of all time, what such trials may cost."""


@dataclass(frozen=True, slots=True)
class FixedLength:
    """Draft `tokens` in every round; 0 drafts nothing."""

    tokens: int

    def __call__(self, proposal: Proposal) -> bool:
        """Whether `proposal` is long enough."""
        return len(proposal.tokens) >= self.tokens


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is expected of a block: the `tokens` that its round emits, and its `cost` in plain steps.

    `kept[i]` is the chance that its first i + 1 tokens are kept. `rate` is ρ, what time is worth: tokens for each
    plain step. A block was worth its while if `gain` is above that of an empty one, 1 - ρ.
    """

    kept: tuple[float, ...]
    tokens: float
    cost: float
    rate: float

    @property
    def gain(self) -> float:
        """Tokens more than the same time brings elsewhere."""
        return self.tokens - self.rate * self.cost


class AdaptiveLength:
    """Draft as long as another token is worth its time, and not at all where plain decoding is faster.

    Worth is tokens: the chance that the block is kept so far, times what is expected to be kept of the next j
    tokens. Time is counted at the rate ρ that recent rounds brought, tokens for each plain step: to draft on
    pays if for some j the one exceeds ρ times the other (the renewal-reward rate; never below 1, which is plain
    decoding, nor above what blocks are believed to bring). A drawn token is always kept, and all that is learned
    is learned from earlier rounds, so every rule of verification stays exact.
    """

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._estimates: dict[str, DrafterEstimate] = {}
        self._recent: deque[tuple[int, float]] = deque()
        self._tokens, self._time = PRIOR_ROUNDS, float(PRIOR_ROUNDS)  # of the recent rounds
        self._rate = self._worth = 1.0
        self._reach: list[float] = [1.0]

    def __call__(self, proposal: Proposal) -> bool:
        """Whether `proposal` is long enough."""
        length, drafter = len(proposal.tokens), self._drafter(proposal.source)
        if length == 0:
            self._reach = [self._beginning]
        while len(self._reach) <= length:
            self._reach.append(self._reach[-1] * drafter.acceptance(proposal.confidences[len(self._reach) - 1]))
        return not (self._pays(proposal, self._reach[length]) or (length == 0 and self._is_due(proposal.source)))

    def outlook(self, proposal: Proposal) -> Outlook:
        """What is expected of `proposal` before it is learned from."""
        length, source = len(proposal.tokens), proposal.source
        drafter = self._drafter(source)
        chances = (drafter.acceptance(confidence) for confidence in proposal.confidences[:length])
        kept = tuple(accumulate(chances, mul, initial=self._beginning))[1:]
        return Outlook(kept, 1 + sum(kept), self._cost(source, length), self._worth)

    def learn(self, proposal: Proposal, verdict: Verdict) -> None:
        """Take note of what became of `proposal`; see `core.decode.Learn`."""
        emitted, length, source = verdict.accepted + 1, len(proposal.tokens), proposal.source
        drafter = self._drafter(source)
        self._count(emitted, self._cost(source, length))
        if length:
            drafter.learn(proposal.confidences, verdict.overlaps, verdict.accepted)
        for name, estimate in self._estimates.items():
            estimate.note(drafted=name == source and length > 0, emitted=emitted, all_kept=verdict.accepted == length)

    @property
    def _beginning(self) -> float:
        """The chance that a block is kept before it begins, so to say."""
        return 1.0 if self._recent else FIRST_WORD

    def _cost(self, source: str, length: int) -> float:
        return self._costs.verify(length + 1) + self._costs.draft(source, length, self._drafter(source).unseen)

    def _count(self, tokens: int, time: float) -> None:
        self._recent.append((tokens, time))
        self._tokens, self._time = self._tokens + tokens, self._time + time
        if len(self._recent) > ROUNDS:
            oldest, its_time = self._recent.popleft()
            self._tokens, self._time = self._tokens - oldest, self._time - its_time
        self._rate = max(1.0, self._tokens / self._time)

    def _drafter(self, source: str) -> DrafterEstimate:
        if source not in self._estimates:
            self._estimates[source] = DrafterEstimate(FIRST_WAIT, LONGEST_WAIT)
        return self._estimates[source]

    def _is_due(self, source: str) -> bool:
        """Whether `source` has not drafted for so long that trying it again costs little."""
        drafter = self._drafter(source)
        extra = self._costs.verify(2) - 1 + self._costs.draft(source, 1, drafter.unseen)
        return drafter.idle >= max(drafter.wait, extra / TRIAL_SHARE)

    def _pays(self, proposal: Proposal, kept: float) -> bool:
        """Whether some number of tokens more is worth its time, `kept` being the chance that the block is kept.

        At the beginning of a block it is settled what its time is worth: the rate of recent rounds, but never more than
        what is believed of the best block now, unless a confidence tells this moment from others. One lucky block
        raises that rate so much that no other seems to pay; then none followed, and the idle draft fell behind.
        """
        prospects = list(self._prospects(proposal, kept))
        if not proposal.tokens:
            best = max((1 + gain) / (1 + time) for gain, time in prospects)
            self._worth = self._rate if proposal.confidences else min(self._rate, max(1.0, best))
        return any(gain > self._worth * time for gain, time in prospects)

    def _prospects(self, proposal: Proposal, kept: float) -> Iterator[tuple[float, float]]:
        """Tokens that each number of tokens more is expected to bring, and its time.

        What a drafter that was idle has to read first counts in full, though all the blocks that follow need it: a
        start that one block would not pay for is left to the trials. Replayed on a draft whose passes get as dear
        with their length as those of a CPU, that made the worst texts 0.98 and 0.96 × plain decoding, not 0.93.
        """
        source, length, known = proposal.source, len(proposal.tokens), proposal.confidences
        drafter, costs = self._drafter(source), self._costs
        verified, drafted = costs.verify(length + 1), costs.draft(source, length, 1)
        starts = length == 0 and drafter.idle > 0
        reading = costs.draft(source, 1, drafter.unseen) - costs.draft(source, 1, 1) if starts else 0.0
        gain = 0.0
        for longer in range(length + 1, LONGEST + 1):
            kept *= drafter.acceptance(known[longer - 1]) if longer <= len(known) else drafter.survival(longer)
            gain += kept
            yield gain, costs.verify(longer + 1) - verified + costs.draft(source, longer, 1) - drafted + reading
