"""How hot the draft should be: Σ min(p, q) when q's temperature is a share of the target's, or learned.

    python -m benchmarks.draft_temperature --target big.gguf --draft small.gguf

q may be any distribution, so its temperature is free. The target writes texts; at each of their positions p is
compared with q at several shares of the target's temperature. "learned" picks, at every position, the share
that was best so far where the entropy of q was alike, beginning with a belief in the constant that is best over
all texts; "hindsight" picks the best share of each position, which nobody can know.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.pairs import PROMPTS, Models, opened_pair
from benchmarks.rules import FILTERS, agreement
from specdec_cli.core.decode import autoregress
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Noise
from specdec_cli.core.sampling.chain import SamplingChain

SHARES: Final = (0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 1.0, 1.2)
SAME: Final = SHARES.index(1.0)
ENTROPIES: Final = (0.1, 0.5, 1.0, 2.0)
"""Nats between the buckets of the learner."""
BELIEF, MEMORY = 200.0, 100.0
"""How many positions the learner's first belief, and the average over all buckets, are worth."""
ROWS: Final = 16

Scores = npt.NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path, required=True)
    parser.add_argument("--max-tokens", type=int, default=200, help="length of each text")
    arguments = parser.parse_args()
    print(f"{arguments.target.name} + {arguments.draft.name}: Σ min(p, q) in points (and agreement of races)\n")
    print(f"{'T':<5}{'filters':<9}" + "".join(f"{share:>14}" for share in SHARES) + f"{'learned':>9}{'hindsight':>11}")
    with opened_pair(arguments.target, arguments.draft) as models:
        for temperature in (0.8, 1.0):
            for name, filters in FILTERS.items():
                chain = replace(filters, temperature=temperature)
                parts = [compare(models, text, chain, arguments.max_tokens) for text in PROMPTS]
                kept, agreed, entropies = (np.concatenate(each) for each in zip(*parts, strict=True))
                figures = zip(100 * kept.mean(0), 100 * agreed.mean(0), strict=True)
                row = "".join(f"{overlap:8.2f} ({raced:4.1f})"[-14:] for overlap, raced in figures)
                best = 100 * learned(kept, entropies), 100 * kept.max(1).mean()
                print(f"{temperature:<5}{name:<9}{row}{best[0]:9.2f}{best[1]:11.2f}", flush=True)


def compare(models: Models, text: str, chain: SamplingChain, length: int) -> tuple[Scores, Scores, Scores]:
    """At each position of a text of the target: Σ min and agreement for each share, [n, shares], and q's entropy."""
    prompt = models.prompt(text)
    models.target.rewind(0)
    models.draft.rewind(0)
    rounds = autoregress(
        models.target, prompt, chain=chain, noise=Noise(5), budget=length, is_end=models.tokenizer.is_end
    )
    context = prompt + [token for round_ in rounds for token in round_.tokens]
    models.target.rewind(len(prompt) - 1)
    models.draft.extend(context[: len(prompt) - 1], rows=0)
    hot = [replace(chain, temperature=chain.temperature * share) for share in SHARES]
    kept, agreed, entropies = [], [], []
    for start in range(len(prompt) - 1, len(context) - 1, ROWS):
        part = context[start : min(start + ROWS, len(context) - 1)]
        ours, theirs = models.target.extend(part, rows=len(part)), models.draft.extend(part, rows=len(part))
        for row, draft_row in zip(ours, theirs, strict=True):
            p = chain.distribution(row)
            laws = [each.distribution(draft_row[: models.shared]) for each in hot]
            kept.append([p.overlap(q) for q in laws])
            agreed.append([expected_agreement(p, q) for q in laws])
            entropies.append(entropy(laws[SAME]))
    return np.array(kept), np.array(agreed), np.array(entropies)


def expected_agreement(p: Distribution, q: Distribution) -> float:
    """The chance that races of p and q with the same noise agree, over the most likely tokens of q."""
    order = np.argsort(-q.weights)[:30]
    ids = order if q.ids is None else q.ids[order]
    return sum(q.at(int(token)) * agreement(p, q, int(token)) for token in ids if q.at(int(token)) > 1e-3)


def entropy(q: Distribution) -> float:
    """In nats."""
    chances = q.weights[q.weights > 0] / q.total
    return float(-(chances * np.log(chances)).sum())


def learned(kept: Scores, entropies: Scores) -> float:
    """Mean Σ min(p, q) of picking, by earlier positions only, the share with the best gain over 1.0."""
    gains = kept - kept[:, [SAME]]
    buckets = np.digitize(entropies, ENTROPIES)
    everywhere, belief = np.zeros(len(SHARES)), gains.mean(0)
    inside = np.zeros((len(ENTROPIES) + 1, len(SHARES)))
    counts = np.zeros(len(ENTROPIES) + 1)
    total = 0.0
    for index, (bucket, gain) in enumerate(zip(buckets, gains, strict=True)):
        average = (everywhere + belief * BELIEF) / (index + BELIEF)
        pick = int(((inside[bucket] + average * MEMORY) / (counts[bucket] + MEMORY)).argmax())
        total += kept[index, pick]
        inside[bucket] += gain
        counts[bucket] += 1
        everywhere += gain
    return total / len(kept)


if __name__ == "__main__":
    main()
