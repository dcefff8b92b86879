"""How well a network in training guesses answers that it does not learn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.top_k import Logits
from specdec_cli.distil.answers import Answer
from specdec_cli.distil.lessons import Vocabulary
from specdec_cli.distil.network import Network

CHAIN: Final = SamplingChain()
"""llama.cpp's defaults. They filter, so that next to nothing is lost of p by keeping its likeliest tokens alone."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The mean of Σ min(p, q) over positions, and the share of them where both find the same token likeliest."""

    alpha: float
    top1: float


def agree(
    network: Network, answers: Sequence[Answer], vocabulary: Vocabulary, check: Callable[[], object]
) -> Agreement:
    """Target and `network` compared at each token of `answers`, both after `CHAIN`; `check` may raise in between."""
    network.eval()
    overlaps: list[float] = []
    same: list[bool] = []
    for answer in answers:
        check()
        likely = vocabulary.compact(answer.likely)
        for row, rows, logprobs in zip(_logits(network, answer, vocabulary), likely, answer.logprobs, strict=True):
            p = CHAIN.distribution(_spread(rows, logprobs.astype(np.float32), vocabulary.rows))
            overlaps.append(p.overlap(CHAIN.distribution(row)))
            same.append(bool(row.argmax() == rows[0]))
    network.train()
    return Agreement(float(np.mean(overlaps)), float(np.mean(same)))


def _logits(network: Network, answer: Answer, vocabulary: Vocabulary) -> npt.NDArray[np.float32]:
    """Of the known tokens [answer.length, known] at each place of the answer."""
    head = network.token_embd.weight
    tokens = torch.from_numpy(vocabulary.compact(answer.tokens))[None].to(head.device)
    with torch.no_grad():
        states = network(tokens)[0, answer.start - 1 : -1]
        logits: npt.NDArray[np.float32] = (states @ head.T)[:, :-1].float().cpu().numpy()
    return logits


def _spread(rows: npt.NDArray[np.int64], logprobs: Logits, size: int) -> Logits:
    """A row of `size` logits that knows only of some."""
    spread = np.full(size, -np.inf, np.float32)
    spread[rows[::-1]] = logprobs[::-1]  # of tokens that share the row of the others, the likeliest counts
    return spread
