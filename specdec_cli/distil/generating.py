"""Asking a target many prompts at once, and keeping what it answers and what else it could have said."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from specdec_cli.core.noise import Noise
from specdec_cli.core.past import Past
from specdec_cli.core.top_k import Logits, top_k_ids
from specdec_cli.distil.answers import Answer
from specdec_cli.errors import UsageError
from specdec_cli.generation import Request
from specdec_cli.llama.context_options import ContextOptions
from specdec_cli.llama.sequences import Sequences
from specdec_cli.session import Session

LIKELY: Final = 20
"""Tokens that are kept of each position: with min-p 0.05 the 20 likeliest hold nearly all that can be drawn."""
BATCH: Final = 512
"""Tokens of a prompt in a pass."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Prompts that are asked in turn, all of them `repeat` times, `sequences` at a time.

    Each is answered by `request`, with `longest` tokens at most.
    """

    prompts: Sequence[str]
    request: Request
    longest: int
    repeat: int
    sequences: int

    @property
    def count(self) -> int:
        """Answers in all."""
        return len(self.prompts) * self.repeat


def answer(asking: Asking, session: Session, answered: Container[int]) -> Generator[Answer, None, None]:
    """Answers as they come to their end, but for those whose numbers are `answered`.

    An answer is a function of seed and number, up to the last bits of a batch of a quantised model.

    Raises:
        UsageError: a prompt and its answer do not fit the context.
        ModelError: the chat template refuses a prompt, or llama.cpp failed.
        KeyboardInterrupt: Ctrl-C; answers that are not at their end are lost.
    """
    prompts = [session.prompt_from_messages([{"role": "user", "content": each}]) for each in asking.prompts]
    options = _options(max(map(len, prompts)) + asking.longest, asking, session)
    waiting = (
        _Writing(number, [*prompts[number % len(prompts)]], replace(asking.request, turn=number))
        for number in range(asking.count)
        if number not in answered
    )
    try:
        with (
            session.interrupt,
            Sequences(session.target, session.interrupt, asking.sequences, options) as texts,
        ):
            yield from _written(waiting, texts, asking, session)
    finally:
        session.interrupt.lower()


def _written(
    waiting: Iterator[_Writing], texts: Sequences, asking: Asking, session: Session
) -> Generator[Answer, None, None]:
    at_work: dict[int, _Writing] = {}
    while True:
        free = [index for index in range(asking.sequences) if index not in at_work]
        begun = dict(zip(free, waiting, strict=False))
        for index, writing in begun.items():
            writing.add(texts.begin(index, writing.tokens))
        at_work |= begun
        for index, writing in [*at_work.items()]:
            if session.tokenizer.is_end(writing.tokens[-1]) or writing.length >= asking.longest:
                yield at_work.pop(index).done()
        busy = sorted(at_work)
        if busy:
            rows = texts.advance(busy, [at_work[index].tokens[-1] for index in busy])
            for index, row in zip(busy, rows, strict=True):
                at_work[index].add(row)
        elif free and not begun:
            return


def _options(size: int, asking: Asking, session: Session) -> ContextOptions:
    if size > session.context_limit:
        raise UsageError(
            f"a prompt and its answer may have {size} tokens, and the context holds {session.context_limit}",
            hint="ask for shorter answers with -n, or leave out the longest prompts",
        )
    settings = session.settings
    return ContextOptions(
        size=size,
        batch=max(BATCH, asking.sequences),
        rows=asking.sequences,
        threads=settings.threads or 1,
        flash_attention=settings.flash_attn,
        cache_type_k=settings.cache_type_k,
        cache_type_v=settings.cache_type_v,
    )


@dataclass(slots=True)
class _Writing:
    """One answer in the making: `tokens` so far, the prompt's among them."""

    number: int
    tokens: list[int]
    request: Request
    start: int = field(init=False)
    likely: list[npt.NDArray[np.int32]] = field(default_factory=list)
    logprobs: list[npt.NDArray[np.float16]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = len(self.tokens)

    @property
    def length(self) -> int:
        return len(self.tokens) - self.start

    def add(self, row: Logits) -> None:
        """Draw the next token from the logits of this position, as plain decoding would, and keep what was likely."""
        chance = Noise(self.request.noise_seed).round(self.length, len(self.tokens))
        best = top_k_ids(row, LIKELY)
        highest = row[best[0]]
        whole = highest + np.log(np.exp(row - highest).sum())
        self.likely.append(best.astype(np.int32))
        self.logprobs.append((row[best] - whole).astype(np.float16))
        chain = self.request.chain
        p = chain.distribution(row, Past(self.tokens, window=chain.window))
        self.tokens.append(chance.emit(0, p))

    def done(self) -> Answer:
        tokens = np.array(self.tokens, np.int32)
        return Answer(self.number, self.start, tokens, np.stack(self.likely), np.stack(self.logprobs))
