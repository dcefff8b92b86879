"""What one model reads, in the tokens of another: how a draft with its own vocabulary follows the target's text.

Every token of the target is one of the draft's, or is spelled out by several; so the draft can go back to the end
of any of them. A long text is read at once, the way in which the draft's own tokenizer cuts it, and the draft can
then go back to its control tokens only. How well it is read decides how good the guesses are, and nothing else.
It knows nothing about models: vocabularies are arrays and functions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Step = tuple[int, Sequence[int]]
"""How many tokens of the target these tokens of the draft are."""


@dataclass(frozen=True, slots=True)
class Translator:
    """From the target's tokens to the draft's.

    `to_draft[y]` is the draft's token for target token y, -1 where it has none; `byte_tokens[b]` that for a single
    byte. `names` are the target's control tokens. `text_of` gives the bytes that one of its other tokens prints,
    and `tokenise` the draft's tokens for bytes, whole characters, in the middle of a text. `beginnings` are what
    the target and what the draft begins a text with.
    """

    to_draft: Sequence[int]
    byte_tokens: Sequence[int]
    names: Mapping[int, bytes]
    text_of: Callable[[int], bytes]
    tokenise: Callable[[bytes], Sequence[int]]
    beginnings: tuple[int | None, int | None] = (None, None)
    _known: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def begin(self, tokens: Sequence[int]) -> Step:
        """What a text of the target's `tokens` begins with."""
        target, draft = self.beginnings
        return int(list(tokens[:1]) == [target]), () if draft is None else (draft,)

    def one_by_one(self, tokens: Sequence[int]) -> Iterator[Step]:
        """A step for each of `tokens`."""
        for token in tokens:
            yield 1, self.read(token)

    def at_once(self, tokens: Sequence[int]) -> Iterator[Step]:
        """A step for each control token and for all that stands between two."""
        start = 0
        for at, token in enumerate([*tokens, None]):
            if token is None or token in self.names:
                if at > start:
                    yield at - start, self._spell(b"".join(map(self.text_of, tokens[start:at])))
                if token is not None:
                    yield 1, self.read(token)
                start = at + 1

    def read(self, token: int) -> tuple[int, ...]:
        """The draft's tokens for one of the target's; a control token that it lacks is read as its name."""
        if token not in self._known:
            same = self.to_draft[token] if token < len(self.to_draft) else -1
            known = (same,) if same >= 0 else self._spell(self.names.get(token) or self.text_of(token))
            self._known[token] = tuple(known)
        return self._known[token]

    def _spell(self, text: bytes) -> list[int]:
        """The draft's tokens for `text`; byte by byte where it is no whole character, without those it lacks."""
        tokens: list[int] = []
        while text:
            whole, broken = _first_fault(text)
            tokens += self.tokenise(text[:whole]) if whole else ()
            tokens += [token for byte in text[whole:broken] if (token := self.byte_tokens[byte]) >= 0]
            text = text[broken:]
        return tokens


def _first_fault(text: bytes) -> tuple[int, int]:
    """Where the first bytes of `text` that are no whole character begin and end; at its end if all are."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start, error.end
    return len(text), len(text)


class Transcript:
    """A text in the draft's `tokens`, and after which of them how many of the target's end."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._ends: list[tuple[int, int]] = [(0, 0)]

    @property
    def is_new(self) -> bool:
        """Whether it has no step."""
        return len(self._ends) == 1

    @property
    def length(self) -> int:
        """How many tokens of the target it holds."""
        return self._ends[-1][0]

    def append(self, step: Step) -> None:
        """One step longer."""
        count, tokens = step
        self.tokens += tokens
        self._ends.append((self.length + count, len(self.tokens)))

    def cut(self, length: int) -> None:
        """Keep the steps within the first `length` tokens of the target."""
        del self._ends[max(1, bisect_right(self._ends, length, key=lambda end: end[0])) :]
        del self.tokens[self._ends[-1][1] :]
