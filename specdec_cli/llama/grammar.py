"""A grammar as a `Mask`: llama.cpp's engine says which tokens may continue a text that GBNF describes.

Its states are copied before they move, so that one never changes. What the engine may not be asked is not:
it throws on a token that it does not allow, and it knows no ids beyond its vocabulary.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from specdec_cli.core.distribution import Ids
from specdec_cli.core.past import Mask
from specdec_cli.errors import UsageError
from specdec_cli.files import read_file
from specdec_cli.llama.gbnf import SYNTAX, check_grammar
from specdec_cli.llama.library import clear_log, during, llama, log_errors
from specdec_cli.llama.token_texts import TokenTexts
from specdec_cli.llama.weights import Weights

CANDIDATE: Final = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""llama_token_data."""

UNKNOWN, ALLOWED, REFUSED = 0, 1, 2

MANY: Final = 4096
"""Above so many ids the engine, at 60 to 110 ns each, is first asked which characters may come at all."""


def read_grammar(path: Path) -> str:
    """The text of a GBNF file.

    Raises:
        UsageError: it cannot be read, or is not UTF-8.
    """
    try:
        return read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"grammar {path} is not UTF-8: {error.reason} at byte {error.start}", hint=SYNTAX) from None
    except OSError as error:
        raise UsageError(f"grammar {path!s:.80} cannot be read: {error.strerror}", hint="give a GBNF file") from None


def load_grammar(weights: Weights, text: str, *, name: str, texts: TokenTexts | None = None) -> Mask:
    """The mask of the first token of an answer that follows the rule `root` of the GBNF `text`.

    It is usable as long as the weights are. `name` is how a message calls the grammar, such as `grammar chess.gbnf`.
    With the `texts` of the weights at hand they need not be read again.

    Raises:
        UsageError: llama.cpp refuses the grammar or would not survive it, or it allows no first token.
    """
    check_grammar(text, name)
    clear_log()
    with during(f"reading {name}"):
        sampler, printed = _with_stderr(
            lambda: llama().llama_sampler_init_grammar(weights.vocab, text.encode(), b"root")
        )
    if not sampler:
        raise UsageError(f"{name} cannot be used: {_complaint(printed, text)}", hint=SYNTAX)
    state = _State(texts or TokenTexts(weights), f"following {name}", sampler)
    if not state.allowed(np.arange(weights.vocabulary_size)).any():
        raise UsageError(
            f"{name} allows no token of the model's vocabulary to begin with", hint='an answer follows its rule "root"'
        )
    return state


class _State:
    """A position in a grammar. What it found out is kept, as draft and target ask about the same position."""

    __slots__ = ("__weakref__", "_answers", "_sampler", "_task", "_texts")

    def __init__(self, texts: TokenTexts, task: str, sampler: Any) -> None:
        self._texts = texts
        self._task = task
        self._sampler = sampler
        self._answers = np.zeros(texts.size, np.int8)
        weakref.finalize(self, llama().llama_sampler_free, sampler)

    def allowed(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Whether each of `ids` [n] may come next; none beyond the vocabulary may."""
        inside = ids < self._texts.size
        known = ids[inside]
        self._find_out(known[self._answers[known] == UNKNOWN])
        answer = np.zeros(ids.shape, np.bool_)
        answer[inside] = self._answers[known] == ALLOWED
        return answer

    @property
    def may_end(self) -> bool:
        """See `Mask.may_end`."""
        return bool(self.allowed(self._texts.ends).any())

    def after(self, token: int) -> Mask:
        """The position after `token`; anything goes after an end, and after what could not have come."""
        if not self.allowed(np.array([token]))[0] or self._texts.is_end(token):
            return ANYTHING
        with during(self._task):
            sampler = llama().llama_sampler_clone(self._sampler)
            llama().llama_sampler_accept(sampler, token)
        return _State(self._texts, self._task, sampler)

    def _find_out(self, ids: Ids) -> None:
        """Ask the engine about `ids` [n], which are all unknown."""
        if ids.size > MANY:
            for beginnings in self._texts.by_beginning:
                ids = self._possible(ids, *beginnings)
        self._learn(ids)

    def _possible(self, ids: Ids, beginnings: Ids, beginning: Ids) -> Ids:
        """Those of `ids` that are still unknown after asking what they may begin with."""
        needed = np.zeros(beginnings.size + 1, np.bool_)
        needed[beginning[ids]] = True
        asked = beginnings[needed[:-1]]
        self._learn(asked[self._answers[asked] == UNKNOWN])
        refused = np.append(self._answers[beginnings] == REFUSED, False)[beginning[ids]]
        self._answers[ids[refused]] = REFUSED
        unknown: Ids = ids[self._answers[ids] == UNKNOWN]
        return unknown

    def _learn(self, ids: Ids) -> None:
        if not ids.size:
            return
        candidates = np.zeros(ids.size, CANDIDATE)
        candidates["id"] = ids
        pointer = candidates.ctypes.data_as(llama().llama_token_data_p)
        array = llama().llama_token_data_array(data=pointer, size=ids.size, selected=-1, sorted=False)
        with during(self._task):
            llama().llama_sampler_apply(self._sampler, ctypes.byref(array))
        self._answers[ids] = np.where(candidates["logit"] == 0, ALLOWED, REFUSED)


class _Anything:
    """The mask where no grammar holds any more."""

    may_end = True

    def allowed(self, ids: Ids) -> npt.NDArray[np.bool_]:
        return np.ones(ids.shape, np.bool_)

    def after(self, token: int) -> Mask:  # noqa: ARG002 - whatever it is
        return self


ANYTHING: Final = _Anything()


def _with_stderr(call: Callable[[], Any]) -> tuple[Any, str]:
    """What `call` returns and what it writes to standard error: the only voice that the engine's parser has."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        return call(), ""
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the `with` is below
    except OSError:  # there is no folder for it
        os.close(kept)
        return call(), ""
    with file:
        os.dup2(file.fileno(), 2)
        try:
            result = call()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return result, file.read().decode("utf-8", "replace")


def _complaint(printed: str, text: str) -> str:
    """Why the engine refuses a grammar, in one line, with the place where its parser stopped."""
    reason = printed.partition("error parsing grammar: ")[2].removesuffix(f"\n\n{text}\n")
    if not reason:
        return log_errors() or "llama.cpp does not say why"
    what, _, rest = reason.partition(" at ")
    if not text.endswith(rest) or what == reason:
        return "a number in it is too large" if reason.startswith("sto") else reason
    before, near = text.removesuffix(rest), " ".join(rest[:40].split()[:4])
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"{what} at line {line}, column {column}" + (f", near {near}" if near else ", where it ends")
