"""Where the end of a text occurred before, however long it is: an index of all substrings that grows token by token.

A suffix automaton (Blumer et al. 1985). A state stands for the substrings that end at the same set of places; its
link leads to the longest of their suffixes that ends at more. A text of n tokens has at most 2n states and 3n
transitions, and a token costs amortised O(1) for any vocabulary: transitions are redirected, never removed, so all
that are ever copied are at most as many as exist.
Nine states of ten have one way on in real texts; it is kept in arrays, and only further ones in dictionaries.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

ROOT: Final = 0
NONE: Final = -1
LINKS: Final = 16
"""States that a token brings up to date. Of what is deeper, inside runs of one phrase, an earlier place may be known
than the last: where code and prose were looked up, 8 gave the same guesses as no limit."""


@dataclass(frozen=True, slots=True)
class Match:
    """The last `length` tokens of a text are also those before `place` of the indexed one; 0 is no match."""

    length: int = 0
    place: int = 0


class SuffixAutomaton:
    """`tokens` with all of their substrings. A negative token is a separator, see `separate`."""

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self.tokens: list[int] = []
        self._lengths = array("i", [0])
        self._links = array("i", [NONE])
        self._places = array("i", [0])
        """Where the substrings of a state last ended with a token after them; 0 for nowhere."""
        self._first_token = array("i", [0])
        self._first_target = array("i", [NONE])
        self._further: dict[int, dict[int, int]] = {}
        self._end = ROOT
        self.extend(tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        """Append `tokens`."""
        for token in tokens:
            self.append(token)

    def separate(self) -> None:
        """Append a token that no other text holds, and that counts as none: nothing goes on into it."""
        self.append(-1)

    def longest(self) -> Match:
        """The longest end of `tokens` that occurred before with a token after it, where it last did."""
        return self._followed(self._links[self._end]) if self.tokens else Match()

    def step(self, state: int, length: int, token: int) -> tuple[int, int]:
        """See `Follower`: the longest end of its text, as a state and a length, once `token` is added to it."""
        while (following := self._after(state, token)) == NONE:
            state = self._links[state]
            if state == NONE:
                return ROOT, 0
            length = self._lengths[state]
        return following, length + 1

    def found(self, state: int, length: int) -> Match:
        """Where what `step` gave last occurred with a token after it, shortened until it did."""
        return Match(length, self._places[state]) if self._places[state] else self._followed(self._links[state])

    def _followed(self, state: int) -> Match:
        while state > ROOT and not self._places[state]:
            state = self._links[state]
        return Match(self._lengths[state], self._places[state]) if state > ROOT else Match()

    def append(self, token: int) -> None:
        """Extend the automaton by one token: the online construction."""
        if token >= 0:
            self._note_followed()
        self.tokens.append(token)
        end, new = self._end, self._add(len(self.tokens), ROOT, 0)
        self._first_token[end], self._first_target[end] = token, new  # the only state that leads nowhere yet
        state = self._lead(self._links[end], token, new)
        if state != NONE:
            self._links[new] = self._just_longer(state, token)
        self._end = new

    def _lead(self, state: int, token: int, target: int) -> int:
        """Lead `token` to `target` from `state` and its links, down to the first that it leads on from already."""
        first_token, links, further = self._first_token, self._links, self._further
        while state != NONE and first_token[state] != token:
            ways = further.get(state)
            if ways is None:
                further[state] = {token: target}
            elif token in ways:
                break
            else:
                ways[token] = target
            state = links[state]
        return state

    def _note_followed(self) -> None:
        """A token is about to follow every suffix: this is the latest place of each."""
        places, links, place, state = self._places, self._links, len(self.tokens), self._end
        for _ in range(LINKS):
            if state <= ROOT:
                break
            places[state] = place
            state = links[state]

    def _just_longer(self, state: int, token: int) -> int:
        """The state of the longest substring of `state` with `token` after it, split off from longer ones."""
        following, length = self._after(state, token), self._lengths[state] + 1
        if self._lengths[following] == length:
            return following
        clone = self._add(length, self._links[following], self._places[following])
        self._first_token[clone], self._first_target[clone] = (
            self._first_token[following],
            self._first_target[following],
        )
        if following in self._further:
            self._further[clone] = self._further[following].copy()
        self._links[following] = clone
        while state != NONE and self._redirect(state, token, following, clone):
            state = self._links[state]
        return clone

    def _redirect(self, state: int, token: int, following: int, clone: int) -> bool:
        """Lead `token` from `state` to `clone` if it led to `following`."""
        if self._first_token[state] == token and self._first_target[state] == following:
            self._first_target[state] = clone
        elif self._further.get(state, {}).get(token) == following:
            self._further[state][token] = clone
        else:
            return False
        return True

    def _add(self, length: int, link: int, place: int) -> int:
        self._lengths.append(length)
        self._links.append(link)
        self._places.append(place)
        self._first_token.append(0)
        self._first_target.append(NONE)
        return len(self._lengths) - 1

    def _after(self, state: int, token: int) -> int:
        if self._first_token[state] == token:
            return self._first_target[state]
        further = self._further.get(state)
        return NONE if further is None else further.get(token, NONE)


class Follower:
    """The longest end of another text that `index` holds, as that text grows; amortised O(1) a token."""

    def __init__(self, index: SuffixAutomaton) -> None:
        self._index = index
        self._state, self._length = ROOT, 0

    def read(self, token: int) -> None:
        """The text grew by `token`."""
        self._state, self._length = self._index.step(self._state, self._length, token)

    def match(self) -> Match:
        """Where its longest end that the index has with a token after it last occurred there."""
        return self._index.found(self._state, self._length)


def joined(sequences: Iterable[Sequence[int]]) -> SuffixAutomaton:
    """An index of all of `sequences`, each apart from the others; the later ones are the more recent."""
    index = SuffixAutomaton()
    for sequence in sequences:
        index.extend(sequence)
        index.separate()
    return index
