"""Whether --draft-tokens auto ever loses, and how near it comes to the best fixed length known in hindsight.

    python -m benchmarks.auto --target big.gguf --draft small.gguf        (or --draft lookup,small.gguf)

In each cell plain decoding, fixed lengths and auto take turns in one process; every figure is a median of speeds as
multiples of the plain run of the same turn. "oracle" is what no schedule of lengths could beat on the acceptances
that the longest fixed length met: each run of kept tokens drafted as cheaply as the measured costs allow.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from specdec_cli.catalog import Pair, to_draft
from specdec_cli.core.costs import Costs
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.generation import Request
from specdec_cli.limits import DraftTokens
from specdec_cli.session import Session
from specdec_cli.settings import Listener, ModelSettings

FIXED: Final = (1, 2, 3, 4, 5, 7)
SOURCE: Final = '''class Account:
    """A bank account."""

    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        return self.balance

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount
        return self.balance

    def __repr__(self):
        return f"Account({self.owner!r}, {self.balance})"
'''
PROMPTS: Final = {
    "code": "Write a Python class for a bank account with deposit, withdraw and transfer methods and docstrings.",
    "prose": "Write a short story about a lighthouse keeper who finds a message in a bottle.",
    "edit": f"Rename `balance` to `funds` in this file. Answer with the whole file and nothing else.\n\n{SOURCE}",
}
CHAINS: Final = {"0": SamplingChain(0), "1": SamplingChain(1, 0, 1, 0)}


@dataclass(frozen=True, slots=True)
class Run:
    """Tokens a second, and how many drafted tokens each round kept."""

    speed: float
    kept: list[int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", required=True, help="as for specdec generate")
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--prompts", nargs="+", choices=PROMPTS, default=list(PROMPTS))
    parser.add_argument("--temperatures", nargs="+", choices=CHAINS, default=list(CHAINS))
    arguments = parser.parse_args()
    pair = Pair(arguments.target, to_draft(arguments.draft, Path()))
    drafts = ", ".join(Path(each).name for each in arguments.draft.split(","))
    print(f"{pair.target.name} + {drafts}: speed as a multiple of plain decoding\n")
    print(f"{'T':<3}{'text':<7}{'plain':>10}" + "".join(f"{f'γ={n}':>7}" for n in FIXED) + f"{'auto':>8}{'oracle':>8}")
    ratios = []
    with Session(pair, ModelSettings(), Listener(progress=lambda *_: None, notice=print)) as session:
        for temperature in arguments.temperatures:
            for text in arguments.prompts:
                ratios.append(cell(session, temperature, text, arguments))
    mean = np.exp(np.mean(np.log([auto / best for auto, best in ratios])))
    print(
        f"\nauto: at worst {min(auto for auto, _ in ratios):.2f} × plain; {mean:.3f} × the best fixed length (with 0)"
    )


def cell(session: Session, temperature: str, text: str, arguments: argparse.Namespace) -> tuple[float, float]:
    """Print one row; auto and the best fixed length, as multiples of plain."""
    lengths: tuple[DraftTokens, ...] = (0, *FIXED, "auto")
    runs: dict[DraftTokens, list[Run]] = {length: [] for length in lengths}
    for seed in range(arguments.repeat):
        for length in lengths:
            runs[length].append(run(session, temperature, text, length, seed, arguments.max_tokens))
    speeds = {
        length: statistics.median(each.speed / plain.speed for each, plain in zip(runs[length], runs[0], strict=True))
        for length in lengths
    }
    plain = statistics.median(each.speed for each in runs[0])
    assert session.costs is not None
    best = statistics.median(oracle(each.kept, session.costs) for each in runs[FIXED[-1]])
    row = "".join(f"{speeds[length]:7.2f}" for length in FIXED)
    print(f"{temperature:<3}{text:<7}{plain:6.1f} t/s{row}{speeds['auto']:8.2f}{best:8.2f}", flush=True)
    return speeds["auto"], max(1.0, *(speeds[length] for length in FIXED))


def run(session: Session, temperature: str, text: str, length: DraftTokens, seed: int, max_tokens: int) -> Run:
    prompt = session.prompt_from_messages([{"role": "user", "content": PROMPTS[text]}])
    request = Request(CHAINS[temperature], seed, draft_tokens=length, max_tokens=max_tokens)
    generation = session.generate(prompt, request)
    kept, before = [], 0
    started = time.perf_counter()
    for _ in generation:
        kept.append(generation.counters.accepted - before)
        before = generation.counters.accepted
    seconds = time.perf_counter() - started - generation.timing.prompt
    return Run(generation.counters.tokens / seconds, kept)


def oracle(kept: list[int], costs: Costs) -> float:
    """Tokens for each plain step if every run of kept tokens had been drafted in as many blocks as is cheapest.

    A run goes on over blocks that were kept whole.
    """

    @cache
    def cheapest(count: int) -> float:
        """Steps for `count` tokens that any draft gets right."""
        if count <= 0:
            return 0.0
        blocks = range(min(count, len(costs.target)))
        return min(
            costs.verify(drafted + 1) + costs.draft(ModelDrafter.name, drafted, 1) + cheapest(count - drafted - 1)
            for drafted in blocks
        )

    runs = [0]
    for each in kept:
        runs[-1] += each + 1
        if each < FIXED[-1]:
            runs.append(0)
    return sum(runs) / sum(cheapest(run) for run in runs)


if __name__ == "__main__":
    main()
