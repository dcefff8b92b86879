"""What the tokens of a vocabulary are spelled like, and which of them a text means."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from specdec_cli.core.distribution import Ids
from specdec_cli.core.sampling.dry import Breakers
from specdec_cli.errors import UsageError
from specdec_cli.llama.library import during, llama
from specdec_cli.llama.weights import Weights

LONGEST_BREAKER: Final = 40
"""Bytes; llama.cpp cuts a longer one."""
LONGEST_TAIL: Final = 20
"""Tokens; likewise."""

Beginnings = tuple[Ids, Ids]
"""Tokens that are nothing but a beginning [k], and which of them each token [vocabulary] begins with; k for none."""

_Reader = Callable[[int, ctypes.Array[ctypes.c_char]], int]


class TokenTexts:
    """The spelling of every token of loaded weights, control tokens too; usable as long as they are."""

    def __init__(self, weights: Weights) -> None:
        self._vocab = weights.vocab
        self.size = weights.vocabulary_size
        self._task = f"reading the vocabulary of {weights.role} {weights.path}"

    @cached_property
    def pieces(self) -> list[bytes]:
        """What each token adds to a text, by id."""
        to_piece = llama().llama_token_to_piece
        return self._read(lambda token, room: int(to_piece(self._vocab, token, room, len(room), 0, True)))

    @cached_property
    def alone(self) -> list[bytes]:
        """What each token is as a whole text, by id: without the blank that some tokenizers put first."""
        to_text, only = llama().llama_detokenize, (ctypes.c_int32 * 1)()

        def read(token: int, room: ctypes.Array[ctypes.c_char]) -> int:
            only[0] = token
            return int(to_text(self._vocab, only, 1, room, len(room), False, True))

        return self._read(read)

    @cached_property
    def by_beginning(self) -> tuple[Beginnings, Beginnings]:
        """The vocabulary without ends of generation by its first character, and by its first two."""
        texts = [b"" if self.is_end(token) else piece for token, piece in enumerate(self.pieces)]
        return _beginnings(texts, 1), _beginnings(texts, 2)

    def is_end(self, token: int) -> bool:
        """Whether the vocabulary marks `token` as an end of generation."""
        return bool(llama().llama_vocab_is_eog(self._vocab, token))

    @cached_property
    def ends(self) -> Ids:
        """All tokens that end a generation."""
        return np.array([token for token in range(self.size) if self.is_end(token)], np.intp)

    @property
    def suppressed(self) -> tuple[int, ...]:
        """Tokens that the model file bans from every answer."""
        count = ctypes.c_int32()
        tokens = llama().llama_vocab_get_suppress_tokens(self._vocab, ctypes.byref(count))
        return tuple(tokens[: count.value])

    def breakers(self, texts: Sequence[str]) -> Breakers:
        """The sequence breakers of DRY as llama.cpp resolves them for this vocabulary.

        A token that holds the text breaks by itself: its tail is (). One that ends with the beginning of the
        text breaks when the tokens of the rest follow it. Each text is cut at 40 bytes, each tail at 20 tokens.
        """
        found: dict[int, dict[tuple[int, ...], None]] = {}
        for text in texts:
            whole = text.encode("utf-8", "replace")[:LONGEST_BREAKER]
            tails = [()] + [tuple(self._tokens(whole[at:])[:LONGEST_TAIL]) for at in range(1, len(whole))]
            for token, spelling in enumerate(self.alone if whole else ()):
                if whole[:1] in spelling:
                    for at in _overlaps(spelling, whole):
                        found.setdefault(token, {})[tails[at]] = None
        return {token: tuple(tails) for token, tails in found.items()}

    def token_of(self, text: str) -> int:
        """The one token that `text` means: digits are its id, anything else is its spelling, which may be in quotes.

        Raises:
            UsageError: there is no such id, or `text` is not exactly one token.
        """
        if text.isascii() and text.isdigit():
            if int(text) >= self.size:
                raise UsageError(
                    f"there is no token {text}: the vocabulary has {self.size:,}",
                    hint=f'for the text of these digits write it in quotes: "{text}"',
                )
            return int(text)
        spelled = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
        tokens = self._spelling(spelled.encode("utf-8", "replace"))
        if len(tokens) != 1:
            made_of = ", ".join(f"{self._shown(token)} ({token})" for token in tokens[:8])
            more = f" and {len(tokens) - 8} more" if len(tokens) > 8 else ""
            raise UsageError(
                f'"{spelled}" is {len(tokens)} tokens, not one{": " if tokens else ""}{made_of}{more}',
                hint="bias one of these by its id, or use --stop to end at a text" if tokens else "name a token",
            )
        return tokens[0]

    def inside(self, text: bytes) -> list[int]:
        """The tokens of `text` in the middle of another, names of control tokens being nothing but text."""
        return self._spelling(text, special=False)

    def _spelling(self, text: bytes, *, special: bool = True) -> list[int]:
        """The tokens of `text` in the middle of a line: without the blank that some tokenizers put first."""
        tokens = self._tokens(text, special=special)
        if b"".join(self.pieces[token] for token in tokens) == text:
            return tokens
        before = self._tokens(b"\n")
        following = self._tokens(b"\n" + text, special=special)
        return following[len(before) :] if following[: len(before)] == before else tokens

    def _shown(self, token: int) -> str:
        return '"' + self.pieces[token].decode("utf-8", "replace").replace("\n", "\\n") + '"'

    def _tokens(self, text: bytes, *, special: bool = False) -> list[int]:
        tokens = (ctypes.c_int32 * (len(text) + 2))()
        with during(self._task):
            count = llama().llama_tokenize(self._vocab, text, len(text), tokens, len(tokens), False, special)
        return list(tokens[:count])

    def _read(self, read: _Reader) -> list[bytes]:
        room = ctypes.create_string_buffer(256)
        texts: list[bytes] = []
        with during(self._task):
            for token in range(self.size):
                count = read(token, room)
                if count < 0:
                    room = ctypes.create_string_buffer(-count)
                    count = read(token, room)
                texts.append(room.raw[:count])
        return texts


def _overlaps(spelling: bytes, text: bytes) -> list[int]:
    """How many bytes of `text` a spelling may have begun: 0 if it holds all of it, else the lengths it ends with."""
    if text in spelling:
        return [0]
    return [at for at in range(min(len(spelling), len(text) - 1), 0, -1) if spelling.endswith(text[:at])]


def _beginnings(texts: Sequence[bytes], length: int) -> Beginnings:
    """`texts` by their first `length` characters; half a character is none, nor is the one that stands for it here."""
    starts = [text[: 4 * length].decode("utf-8", "replace")[:length].partition("\ufffd")[0] for text in texts]
    whole = {
        start: token for token, start in enumerate(starts) if len(start) == length and start.encode() == texts[token]
    }
    position = {start: at for at, start in enumerate(whole)}
    first = [position.get(start, len(whole)) for start in starts]
    return np.array(list(whole.values()), np.intp), np.array(first, np.intp)
