"""Counting tables of n-grams: from texts, or from what a target itself answers to prompts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from specdec_cli.core.logprobs import TokenLogprobs
from specdec_cli.core.ngram_counts import Observations, count, joined, merge, observe, pruned
from specdec_cli.core.ngrams import NgramTable
from specdec_cli.generation import Request
from specdec_cli.ngram_file import to_bytes
from specdec_cli.session import Session

ALTERNATIVES: Final = 8
"""Tokens that the target could have said instead, each learned with its probability: with them a table of SmolLM2's
answers is as good as one of half as many answers again, Σ min(p, q) 0.254 in place of 0.242."""
LEAST: Final = 0.02
"""Their probability, or they are left out."""
CHUNK: Final = 1 << 20
"""Tokens of a text that are counted at once."""
RARE: Final = 0.5
"""n-grams of answers that count less are left out: 0.0002 of Σ min(p, q), and three quarters of the file."""


def learn_text(table: NgramTable | None, tokens: Sequence[int], order: int, vocabulary: int) -> NgramTable | None:
    """`table`, if there is one, with all of a text."""
    for first in range(0, len(tokens), CHUNK):
        start = min(first, order - 1)
        part = tokens[first - start : first + CHUNK]
        table = _added(table, count(observe(part, order, start=start), vocabulary))
    return table


def learn_answers(
    table: NgramTable | None,
    session: Session,
    prompts: Sequence[str],
    request: Request,
    order: int,
    report: Callable[[int, int], object],
) -> NgramTable | None:
    """`table`, if there is one, with what the target of `session` answers to each of `prompts`.

    `report` hears after each answer how many there are and how many tokens they have. Ctrl-C ends it: what was
    answered by then is learned.
    """
    seen: list[Observations] = []
    tokens = 0
    for observations in _answers(session, prompts, request, order):
        seen.append(observations)
        tokens += int(observations.weights.size)
        report(len(seen), tokens)
    if not seen:
        return table
    return _added(table, pruned(count(joined(seen), session.target.vocabulary_size), RARE))


def _answers(session: Session, prompts: Sequence[str], request: Request, order: int) -> Iterator[Observations]:
    for turn, prompt in enumerate(prompts):
        tokens = session.prompt_from_messages([{"role": "user", "content": prompt}])
        generation = session.generate(tokens, replace(request, logprobs=ALTERNATIVES, turn=turn))
        for _ in generation:
            pass
        if generation.finish_reason == "interrupted":
            return
        yield observed(tokens, generation.logprobs, order)


def observed(prompt: Sequence[int], answer: Sequence[TokenLogprobs], order: int) -> Observations:
    """What an answer says of the target: each token that it gave a chance, with that chance, behind those before it.

    The end of `prompt` is context. The token that was drawn is only one of them, counted by its chance too.
    """
    start = prompt[len(prompt) - min(len(prompt), order - 1) :]
    drawn = observe([*start, *(each.emitted.token for each in answer)], order)
    windows, weights = [drawn.windows], [np.zeros(len(drawn.weights))]
    for window, known in zip(drawn.windows[len(start) :], answer, strict=True):
        chances = {each.token: math.exp(each.chain) for each in (*known.best, known.emitted)}
        likely = {token: chance for token, chance in chances.items() if chance >= LEAST}
        others = np.repeat(window[None], len(likely), axis=0)
        others[:, -1] = list(likely)
        windows.append(others)
        weights.append(np.array(list(likely.values())))
    return Observations(np.concatenate(windows), np.concatenate(weights))


def within(table: NgramTable, most: int, fingerprint: bytes) -> NgramTable:
    """`table` without its rarest n-grams, as many as it takes for its file to have at most `most` bytes."""
    least, smaller = 0.0, table
    while len(to_bytes(smaller, fingerprint)) > most and smaller.size > len(table.levels[0].keys):
        least = max(1.25 * least, RARE)
        smaller = pruned(table, least)
    return smaller


def _added(table: NgramTable | None, more: NgramTable) -> NgramTable:
    return more if table is None else merge(table, more)
