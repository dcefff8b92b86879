"""How the tokens of two models relate: p and q are compared id by id, so both must mean the same by an id.

Mostly they do: `first_difference` is empty for two sizes of one family. Otherwise `find_overlap` says which
tokens of the draft the target also has as one token, by what they print. A draft that knows only a part of its
target's tokens is such a pair too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import repeat
from typing import Final

from specdec_cli.errors import ModelError

NORMAL, USER_DEFINED, UNUSED, BYTE = 1, 4, 5, 6
"""Kinds of tokens as GGUF numbers them; others are control tokens."""

BLANK: Final = "▁".encode()


def _byte_alphabet() -> dict[int, int]:
    """GPT-2's letter for each byte, by code point; what else is below 256 spells nothing."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in kept]
    nothing = dict.fromkeys(range(256), 0xFFFF)
    return nothing | {byte: byte for byte in kept} | {256 + at: byte for at, byte in enumerate(moved)}


BYTE_OF_LETTER: Final = _byte_alphabet()

FEWEST_SHARED: Final = 0.1
"""Of the smaller vocabulary. Twenty that language models use share 0.28 (code with Chinese) to 1 with each other;
two that have only the single bytes in common, 0.01 and less."""

SAMPLE: Final = """\
She had lived in the house by the river for twenty years before she noticed that the clock in the hall was wrong.
"It doesn't matter," he said, and closed the door. In 2019, about 35% of the 1,204 people who were asked had one.

def median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 0:
        return (ordered[middle - 1] + ordered[middle]) / 2
    return ordered[middle]
"""
"""A text to measure an overlap on: the tokens that are shared are the common ones, so they are most of a text."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of one file in order of their ids, spelled as it spells them, and their `kinds` if it has any.

    `bos` and `add_bos` are None where the file says nothing.
    """

    source: str
    model: str
    tokens: Sequence[bytes]
    bos: int | None
    add_bos: bool | None
    kinds: Sequence[int] = ()

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that tell vocabularies apart whose ids mean different tokens; padding at the end says nothing."""
        kinds = self.kinds or [NORMAL] * len(self.tokens)
        length = max((token for token, kind in enumerate(kinds, 1) if kind != UNUSED), default=0)
        digest = blake2b(digest_size=16)
        for token in self.tokens[:length]:
            digest.update(len(token).to_bytes(4, "little") + token)
        return digest.digest()


@dataclass(frozen=True, slots=True)
class Ends:
    """The tokens with which a model ends a turn and a text, whatever it calls them; None for one that it lacks."""

    turn: int | None
    text: int | None


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a draft and a target of different vocabularies share.

    `to_target[x]` is the target's id of draft token x, -1 where the target has no such token; no id comes twice.
    `to_draft[y]` is how the draft reads target token y, -1 where that has to be spelled out: the inverse, and ends.
    `names` are the target's control tokens, `byte_tokens[b]` the draft's token for the single byte b, or -1.
    `of_draft` and `of_target` are the shares of each one's texts that both have as one token.
    """

    to_target: Sequence[int]
    to_draft: Sequence[int]
    names: Mapping[int, bytes]
    byte_tokens: Sequence[int]
    of_draft: float
    of_target: float

    def with_ends(self, target: Ends, draft: Ends) -> Overlap:
        """The same where ends of one meaning stand for each other, unless their names already decided that."""
        to_target, to_draft = list(self.to_target), list(self.to_draft)
        for ours, theirs in ((target.turn, draft.turn), (target.text, draft.text)):
            if ours is not None and theirs is not None and to_draft[ours] < 0:
                to_draft[ours] = theirs
                if to_target[theirs] < 0:
                    to_target[theirs] = ours
        return replace(self, to_target=to_target, to_draft=to_draft)

    def notice(self, sample: Sequence[int]) -> str:
        """What a user should know; `sample` is `SAMPLE` in the target's tokens."""
        known = sum(self.to_draft[token] >= 0 for token in sample) / len(sample)
        about = (
            f"the draft has another vocabulary, with {self.of_target:.0%} of the target's tokens and {known:.0%} of "
            "those of an ordinary text"
        )
        loss = "it cannot guess the others, so fewer guesses will be kept than of a draft of the target's family"
        return about if known == 1 else f"{about}; {loss}"


def first_difference(target: Vocabulary, draft: Vocabulary) -> str:
    """The first difference in words, empty if there is none."""
    if target.model != draft.model:
        return f"its tokenizer is {draft.model or 'unknown'}, the target's {target.model or 'unknown'}"
    shared = min(len(target.tokens), len(draft.tokens))
    if target.tokens[:shared] != draft.tokens[:shared]:
        pairs = enumerate(zip(target.tokens, draft.tokens, strict=False))
        token, (ours, theirs) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        return f"token {token} is {_quoted(theirs)}, the target's is {_quoted(ours)}"
    if None not in (target.add_bos, draft.add_bos) and target.add_bos != draft.add_bos:
        return f"its add-bos setting is {draft.add_bos}, the target's {target.add_bos}"
    if target.add_bos and None not in (target.bos, draft.bos) and target.bos != draft.bos:
        return f"its beginning-of-text token is {draft.bos}, the target's {target.bos}"
    return ""


def _quoted(token: bytes) -> str:
    return repr(token.decode("utf-8", "replace"))


def find_overlap(target: Vocabulary, draft: Vocabulary) -> Overlap:
    """Match the tokens of both by what they print, control tokens by their names; 0.6 s for 200,000 tokens.

    Raises:
        ModelError: they share less than `FEWEST_SHARED` of the smaller vocabulary.
    """
    ours, theirs = _by_text(target), _by_text(draft)
    both = ours.keys() & theirs.keys()
    to_target, to_draft = [-1] * len(draft.tokens), [-1] * len(target.tokens)
    for text in both:
        to_target[theirs[text]], to_draft[ours[text]] = ours[text], theirs[text]
    shared, of_target, of_draft = (sum(not is_control for _, is_control in texts) for texts in (both, ours, theirs))
    smaller = max(1, min(of_target, of_draft))
    if shared < FEWEST_SHARED * smaller:
        raise ModelError(
            f"draft {draft.source} does not fit target {target.source}: they share {shared:,} tokens, "
            f"{shared / smaller:.1%} of the smaller vocabulary",
            hint=f"under {FEWEST_SHARED:.0%} a draft cannot help: take a model of the target's family, or -d lookup",
        )
    return Overlap(
        to_target=to_target,
        to_draft=to_draft,
        names={token: name for (name, is_control), token in ours.items() if is_control},
        byte_tokens=[theirs.get((bytes([byte]), False), -1) for byte in range(256)],
        of_draft=shared / of_draft,
        of_target=shared / of_target,
    )


_Text = tuple[bytes, bool]
"""What a token prints, or its name and true for a control token."""


def _by_text(vocabulary: Vocabulary) -> dict[_Text, int]:
    """The token of each text, the lowest id where several print the same; padding left out.

    SentencePiece has single bytes besides letters that print the same; it writes with the letters.
    """
    found: dict[_Text, int] = {}
    single_bytes: dict[_Text, int] = {}
    prints = PRINTS.get(vocabulary.model, _as_spelled)
    kinds = vocabulary.kinds or repeat(NORMAL)
    for token, (spelling, kind) in enumerate(zip(vocabulary.tokens, kinds, strict=False)):
        if kind == NORMAL:
            found.setdefault((prints(spelling), False), token)
        elif kind == BYTE:
            single_bytes.setdefault((_named_byte(spelling), False), token)
        elif kind != UNUSED:
            found.setdefault((spelling, kind != USER_DEFINED), token)
    known = single_bytes | found
    known.pop((b"", False), None)
    return known


def _as_spelled(spelling: bytes) -> bytes:
    return spelling


def _with_blanks(spelling: bytes) -> bytes:
    return spelling.replace(BLANK, b" ")


def _from_letters(spelling: bytes) -> bytes:
    """The bytes that GPT-2's letters stand for; none if one of them stands for none."""
    try:
        return spelling.decode().translate(BYTE_OF_LETTER).encode("latin-1")
    except UnicodeError:
        return b""


def _named_byte(spelling: bytes) -> bytes:
    """The byte of `<0x0A>` and the like; none if it is not spelled so."""
    try:
        return bytes([int(spelling.removeprefix(b"<0x").removesuffix(b">"), 16)])
    except ValueError:
        return b""


PRINTS: Final = {
    "gpt2": _from_letters,
    "llama": _with_blanks,
    "t5": _with_blanks,
    "bert": _with_blanks,
    "gemma4": _with_blanks,
}
"""What a plain token prints by its spelling, for each kind of tokenizer that does not write it down as it is."""
