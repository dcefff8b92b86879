"""What is learned of a drafter while it drafts: how often it is right, by how sure it is and by its place in the block.

A drafted token counts with Σ min(p, q) wherever the target examined it: that says more than whether it was kept. Its
chance to be kept is a little more by the block rule and less by the coupled rule; by how much, counts show. Nothing
here knows about costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

BUCKETS: Final = 12
"""Of confidence, equally wide."""
MEMORY: Final = 60.0
"""Examples that a mean remembers, older ones fading."""
BELIEF: Final = 8.0
"""Examples that the first belief about a bucket is worth: that its drafter is right as often as it is sure."""
FIRST_SURVIVAL, SURVIVAL_BELIEF = 0.93, 3.0
"""The first belief about every place in a block, and the examples that it is worth: little is soon corrected, and it
makes a start worth while wherever a good draft would pay. Replayed, 0.9 worth 4 started too late at dear targets."""
RULE_BELIEF, RULE_MEMORY = 60.0, 600.0
"""Kept tokens that the belief is worth that a rule keeps Σ min(p, q) of them, and those that are remembered."""
FIRST_PATIENCE, MOST_PATIENCE = 100.0, 6400.0
"""Of what was seen one part in so many is forgotten in each round without a draft, since the text may have become
easier. Twice as long at each return from idleness, half as long at each block that follows another."""
FARTHER, SHARE = 2, 0.3
"""What is seen at one place also counts, by this share, for so many places behind it."""


@dataclass(slots=True)
class _Mean:
    """A mean with fading memory, which begins with the belief in `prior` as if from `belief` examples."""

    prior: float
    belief: float
    memory: float = MEMORY
    sum: float = 0.0
    weight: float = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        self.sum += value * weight
        self.weight += weight
        if self.weight > self.memory:
            self.fade(self.memory / self.weight)

    def fade(self, share: float) -> None:
        """Keep this `share` of what was seen."""
        self.sum *= share
        self.weight *= share

    def value(self, share: float = 1.0) -> float:
        """The mean, if this `share` of what was seen were kept."""
        return (self.prior * self.belief + self.sum * share) / (self.belief + self.weight * share)


class DrafterEstimate:
    """One drafter. `unseen` is how many tokens of the text it reads with its next first step.

    `idle` is for how many rounds it has not drafted, and `wait` for how many it should not, if it does not pay.
    """

    def __init__(self, first_wait: int, longest_wait: int) -> None:
        self.unseen = 1
        self._by_confidence = [_Mean((bucket + 0.5) / BUCKETS, BELIEF) for bucket in range(BUCKETS)]
        self._by_place: list[_Mean] = []
        self._by_rule = _Mean(1.0, RULE_BELIEF, RULE_MEMORY)
        self.idle, self.wait = 0, first_wait
        self._waits = first_wait, longest_wait
        self._patience = FIRST_PATIENCE
        self._kept_share = 1.0  # of what was seen, after the rounds without a draft since it last was added to

    def acceptance(self, confidence: float) -> float:
        """The chance that a token is kept of which the drafter is so sure, 0..1, all before it being kept."""
        return self._kept(self._by_confidence[_bucket(confidence)])

    def survival(self, place: int) -> float:
        """The chance that token `place`, from 1, of a block is kept if all before it are, nothing else being known."""
        return self._kept(self._at(place))

    def learn(self, confidences: Sequence[float], overlaps: Sequence[float], accepted: int) -> None:
        """Of the examined tokens of a block: Σ min(p, q) of each, and how sure the drafter was; how many were kept."""
        if overlaps:
            self._forget()
        for place, (confidence, overlap) in enumerate(zip(confidences, overlaps, strict=False), 1):
            self._by_confidence[_bucket(confidence)].add(overlap)
            self._at(place).add(overlap)
            for farther in range(place + 1, place + 1 + FARTHER):
                self._at(farther).add(overlap, SHARE)
            if overlap > 0:
                self._by_rule.add((place <= accepted) / overlap, overlap)

    def note(self, *, drafted: bool, emitted: int, all_kept: bool) -> None:
        """A round is over that emitted `emitted` tokens, after a block of this drafter or without one."""
        if not drafted:
            self.idle += 1
            self._kept_share *= 1 - 1 / self._patience
            self.unseen += emitted
            return
        more = 2.0 if self.idle else 0.5
        self._patience = min(max(self._patience * more, FIRST_PATIENCE), MOST_PATIENCE)
        first, longest = self._waits
        self.wait = min(2 * self.wait, longest) if self.idle >= self.wait else first
        self.idle = 0
        self.unseen = 2 if all_kept else 1

    def _forget(self) -> None:
        for mean in (*self._by_confidence, *self._by_place):
            mean.fade(self._kept_share)
        self._kept_share = 1.0

    def _kept(self, overlap: _Mean) -> float:
        return min(1.0, overlap.value(self._kept_share) * self._by_rule.value())

    def _at(self, place: int) -> _Mean:
        while len(self._by_place) < place:
            self._by_place.append(_Mean(FIRST_SURVIVAL, SURVIVAL_BELIEF))
        return self._by_place[place - 1]


def _bucket(confidence: float) -> int:
    return min(int(confidence * BUCKETS), BUCKETS - 1)
