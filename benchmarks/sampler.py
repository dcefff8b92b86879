"""What one round costs besides the models: γ draws from q, verification, and the token that follows.

    python -m benchmarks.sampler --target big.gguf --draft small.gguf

Real logits of real blocks, copied, and visited in turns so that no row is in a cache. "all kept" gives the target's
rows to the draft too: every rule then needs all 2γ + 1 distributions. "as drafted" leaves each rule to what it
needs. The floor reads the γ + 1 rows of the target once, as any sampler must.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from benchmarks.pairs import PROMPTS, Models, opened_pair
from benchmarks.rules import FILTERS
from specdec_cli.core.decode import autoregress
from specdec_cli.core.noise import Noise
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.top_k import Logits
from specdec_cli.core.verify import RULES, Proposal, Rule

BLOCKS: Final = 24
Block = tuple[Sequence[Logits], Sequence[Logits]]
"""Rows of the draft, [γ], and of the target, [γ + 1]."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path, required=True)
    parser.add_argument("--draft-tokens", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=8)
    arguments = parser.parse_args()
    length = arguments.draft_tokens
    with opened_pair(arguments.target, arguments.draft) as models:
        blocks = [block for text in PROMPTS for block in real_blocks(models, text, length)][:BLOCKS]
    same = [(ours[:length], ours) for _, ours in blocks]
    size = blocks[0][1][0].size
    print(f"γ = {length}, {size:,} tokens, {2 * length + 1} distributions; medians in milliseconds\n")
    floor = timed(lambda block, _: read_once(block), blocks, arguments.repeat)
    print(f"{'reading the target rows once':<34}{floor:8.2f}\n")
    print(f"{'filters':<10}{'rule':<10}{'as drafted':>14}{'all kept':>12}")
    for name, chain in FILTERS.items():
        for rule_name, rule in RULES.items():
            played = [timed(player(chain, rule), rows, arguments.repeat) for rows in (blocks, same)]
            print(f"{name:<10}{rule_name:<10}{played[0]:14.2f}{played[1]:12.2f}", flush=True)


def real_blocks(models: Models, text: str, length: int) -> list[Block]:
    """Rows along a text of the target: both models read it, so both are at home there."""
    prompt = models.prompt(text)
    models.target.rewind(0)
    models.draft.rewind(0)
    budget = BLOCKS // len(PROMPTS) * (length + 1)
    rounds = autoregress(
        models.target, prompt, chain=SamplingChain(), noise=Noise(1), budget=budget, is_end=lambda _: False
    )
    context = prompt + [token for round_ in rounds for token in round_.tokens]
    models.target.rewind(len(prompt) - 1)
    models.draft.extend(context[: len(prompt) - 1], rows=0)
    found: list[Block] = []
    for start in range(len(prompt) - 1, len(context) - length - 1, length + 1):
        part = context[start : start + length + 1]
        theirs, ours = (model.extend(part, rows=len(part)) for model in (models.draft, models.target))
        found.append(([row.copy() for row in theirs[:length]], [row.copy() for row in ours]))
    return found


def player(chain: SamplingChain, rule: Rule) -> Callable[[Block, int], object]:
    """Everything of a round that is neither model."""

    def play(block: Block, index: int) -> object:
        theirs, ours = block
        chance = rule.noise(7).round(index, 100 * index)
        proposal = Proposal()
        for position, row in enumerate(theirs):
            q = chain.distribution(row)
            proposal = proposal.followed_by(chance.draft(position, q), q)
        return rule.verify(proposal, cache(lambda position: chain.distribution(ours[position])), chance)

    return play


def read_once(block: Block) -> float:
    return sum(float(row.max()) for row in block[1])


def timed(play: Callable[[Block, int], object], blocks: Sequence[Block], repeat: int) -> float:
    """Median milliseconds of `play` on a block."""
    times = []
    for turn in range(repeat):
        for index, block in enumerate(blocks):
            started = time.perf_counter()
            play(block, turn * len(blocks) + index)
            times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


if __name__ == "__main__":
    main()
