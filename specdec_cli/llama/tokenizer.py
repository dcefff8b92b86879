"""Text to tokens and tokens to bytes, by the target's own vocabulary."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from specdec_cli.llama.library import during, llama
from specdec_cli.llama.weights import Weights


class Tokenizer:
    """The vocabulary of loaded weights; usable as long as they are."""

    def __init__(self, weights: Weights) -> None:
        self._vocab = weights.vocab
        self._task = f"reading text for {weights.role} {weights.path}"
        self._pieces: dict[int, bytes] = {}
        self._controls: dict[int, bool] = {}
        bos = llama().llama_vocab_bos(self._vocab)
        self.bos: int | None = bos if bos >= 0 else None
        self.adds_bos = bool(llama().llama_vocab_get_add_bos(self._vocab)) and self.bos is not None

    def encode(self, text: str) -> list[int]:
        """Tokens of `text`, control tokens in it recognised.

        Where the model wants a beginning-of-text token it is there exactly once, whether `text` holds it or not.
        """
        return self.begun(self.encode_part(text))

    def encode_part(self, text: str, *, literally: bool = False) -> list[int]:
        """Tokens of a part of a text that a control token begins; `literally` if none is to be recognised in it."""
        data = text.encode("utf-8", "replace")
        room = len(data) + 2
        tokens = (ctypes.c_int32 * room)()
        with during(self._task):
            count = llama().llama_tokenize(self._vocab, data, len(data), tokens, room, False, not literally)
            if count < 0:
                tokens = (ctypes.c_int32 * -count)()
                count = llama().llama_tokenize(self._vocab, data, len(data), tokens, -count, False, not literally)
        return list(tokens[:count])

    def begun(self, tokens: list[int]) -> list[int]:
        """`tokens` with the beginning-of-text token before them where the model wants one and they have none."""
        beginning = self.beginning
        return tokens if beginning is None or tokens[:1] == [beginning] else [beginning, *tokens]

    def control_texts(self, text: str) -> set[str]:
        """How the control tokens are written that `encode` recognises in `text`."""
        return {self.special_text(token) for token in set(self.encode_part(text)) if self._is_control(token)}

    def _is_control(self, token: int) -> bool:
        if token not in self._controls:
            kinds = llama().LLAMA_TOKEN_ATTR_CONTROL | llama().LLAMA_TOKEN_ATTR_UNKNOWN
            self._controls[token] = bool(llama().llama_vocab_get_attr(self._vocab, token) & kinds)
        return self._controls[token]

    def piece(self, token: int) -> bytes:
        """The bytes that `token` prints; none for a control token. Vocabulary entries may be of any length."""
        if token not in self._pieces:
            self._pieces[token] = self._read_piece(token, special=False)
        return self._pieces[token]

    def reveal(self, texts: Iterable[str]) -> bool:
        """Let the control tokens that `texts` are written with print as they are written; whether there are any."""
        found = {token for text in texts for token in self.encode_part(text) if self._is_control(token)}
        self._pieces |= {token: self._read_piece(token, special=True) for token in found}
        return bool(found)

    def is_end(self, token: int) -> bool:
        """Whether the vocabulary marks `token` as an end of generation (of text, of turn, of message, ...)."""
        return bool(llama().llama_vocab_is_eog(self._vocab, token))

    def special_text(self, token: int | None) -> str:
        """How a control token is written in a chat template; empty for None."""
        return "" if token is None else self._read_piece(token, special=True).decode("utf-8", "replace")

    @property
    def eos(self) -> int | None:
        """The end-of-text token, if there is one."""
        eos = int(llama().llama_vocab_eos(self._vocab))
        return eos if eos >= 0 else None

    @property
    def beginning(self) -> int | None:
        """The token that every text begins with, if there is one."""
        return self.bos if self.adds_bos else None

    @property
    def end_of_turn(self) -> int | None:
        """The token that ends a turn, or else the end-of-text token. llama.cpp guesses it where the file has no key."""
        turn = int(llama().llama_vocab_eot(self._vocab))
        return turn if turn >= 0 else self.eos

    def _read_piece(self, token: int, *, special: bool) -> bytes:
        buffer = ctypes.create_string_buffer(64)
        count = llama().llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, special)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = llama().llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, special)
        return buffer.raw[:count]
