"""How well a network in training guesses answers that it does not learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.top_k import Logits
from specdec_cli.distil.answers import Answer
from specdec_cli.distil.lessons import Vocabulary
from specdec_cli.distil.network import Network


@dataclass(frozen=True, slots=True)
class Agreement:
    """The mean of Σ min(p, q) over positions, and the share of them where both find the same token likeliest."""

    alpha: float
    top1: float


def agree(network: Network, answers: Sequence[Answer], vocabulary: Vocabulary, chain: SamplingChain) -> Agreement:
    """Target and `network` compared at each token of `answers`, both after `chain`, which must filter.

    Of p only the likeliest tokens were kept, so what little `chain` would leave of others is missing here.
    """
    network.eval()
    overlaps: list[float] = []
    same: list[bool] = []
    device = next(network.parameters()).device
    for answer in answers:
        tokens = torch.from_numpy(vocabulary.compact(answer.tokens))[None].to(device)
        with torch.no_grad():
            states = network(tokens)[0, answer.start - 1 : -1]
            logits = (states @ network.token_embd.weight.T)[:, :-1].float().cpu().numpy()
        likely = vocabulary.compact(answer.likely)
        for row, rows, logprobs in zip(logits, likely, answer.logprobs.astype(np.float32), strict=True):
            p = chain.distribution(_spread(rows, logprobs, vocabulary.rows))
            overlaps.append(p.overlap(chain.distribution(row)))
            same.append(bool(row.argmax() == rows[0]))
    network.train()
    return Agreement(float(np.mean(overlaps)), float(np.mean(same)))


def _spread(rows: np.typing.NDArray[np.int64], logprobs: Logits, size: int) -> Logits:
    """A row of `size` logits that knows only of some."""
    spread = np.full(size, -np.inf, np.float32)
    spread[rows[::-1]] = logprobs[::-1]  # of tokens that share the row of the others, the likeliest counts
    return spread
