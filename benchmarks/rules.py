"""Tokens a target pass of each rule, and of the match-the-sample rule with an arg-max draft that llama.cpp uses.

    python -m benchmarks.rules --target big.gguf --draft small.gguf

The target writes a text; at every few tokens of it the draft proposes a block, and the target scores it. How
many tokens a rule then emits is not drawn but worked out: given the block and both models' distributions, the
expected number under each rule has a closed form. The rules are so compared on the same blocks, with none of the
noise of acceptance. What match-the-sample keeps depends on an arg-max block, which is drafted besides. The draft
samples at its default temperature.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.pairs import PROMPTS, Models, opened_pair
from specdec_cli.core.decode import autoregress
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.draft_temperature import to_draft_chain
from specdec_cli.core.noise import Noise
from specdec_cli.core.past import Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.verify import Proposal, accept_probability, block_shares, keep_probability
from specdec_cli.drafters.model import ModelDrafter

TEMPERATURES: Final = (0.6, 0.8, 1.0)
FILTERS: Final = {
    "none": SamplingChain(top_k=0, top_p=1, min_p=0),
    "default": SamplingChain(),
}
RULES: Final = ("match-the-sample", "coupled", "token", "block")
EVERY: Final = 2
"""Tokens of the text from one block to the next."""

Row = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path, required=True)
    parser.add_argument("--draft-tokens", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=150, help="length of each text")
    parser.add_argument("--temperatures", type=float, nargs="+", default=TEMPERATURES)
    arguments = parser.parse_args()
    print(f"{arguments.target.name} + {arguments.draft.name}, γ = {arguments.draft_tokens}: tokens a target pass\n")
    print(
        f"{'temperature':<12}{'filters':<9}{'text':<11}{'Σ min(p, q)':>12}" + "".join(f"{rule:>18}" for rule in RULES)
    )
    with opened_pair(arguments.target, arguments.draft) as models:
        for temperature in arguments.temperatures:
            for name, filters in FILTERS.items():
                chain = replace(filters, temperature=temperature)
                rows = {text: measure(models, text, chain, arguments) for text in PROMPTS}
                rows["all"] = {key: float(np.mean([row[key] for row in rows.values()])) for key in ("α", *RULES)}
                for text, row in rows.items():
                    figures = "".join(f"{row[rule]:18.2f}" for rule in RULES)
                    print(f"{temperature:<12}{name:<9}{text:<11}{row['α']:12.3f}{figures}", flush=True)


def measure(models: Models, text: str, chain: SamplingChain, arguments: argparse.Namespace) -> Row:
    """Mean Σ min(p, q) of the first drafted token, and expected tokens a pass of each rule."""
    prompt = models.prompt(text)
    models.target.rewind(0)
    rounds = autoregress(
        models.target,
        prompt,
        chain=chain,
        noise=Noise(1),
        budget=arguments.max_tokens,
        is_end=models.tokenizer.is_end,
    )
    context = prompt + [token for round_ in rounds for token in round_.tokens]
    found: defaultdict[str, list[float]] = defaultdict(list)
    models.target.rewind(0)
    models.draft.rewind(0)
    for end in range(len(prompt), len(context), EVERY):
        sampled, laws = block(models, context[:end], chain, to_draft_chain(chain), arguments.draft_tokens)
        found["α"].append(laws[0].overlap(sampled.distributions[0]))
        found["token"].append(1 + chained(accept_probability, sampled, laws))
        found["coupled"].append(1 + chained(agreement, sampled, laws))
        found["block"].append(1 + expected_block(sampled, laws))
        greedy, laws = block(models, context[:end], chain, replace(chain, temperature=0), arguments.draft_tokens)
        found["match-the-sample"].append(1 + chained(lambda p, _, token: p.at(token), greedy, laws))
    return {name: float(np.mean(values)) for name, values in found.items()}


def block(
    models: Models, context: Sequence[int], chain: SamplingChain, draft_chain: SamplingChain, length: int
) -> tuple[Proposal, list[Distribution]]:
    """What the draft proposes after `context`, and p at each of its positions."""
    drafter = ModelDrafter(models.draft, draft_chain, vocabulary=models.shared, capacity=models.draft.size)
    chance = Noise(2).round(len(context), 0)
    proposal = drafter.propose(context, Past(), FixedLength(length), chance)
    rows = models.target.extend([*context[models.target.length :], *proposal.tokens], rows=length + 1)
    laws = [chain.distribution(row) for row in rows[:length]]
    models.target.rewind(len(context) - 1)
    drafter.rewind(len(context) - 1)
    return proposal, laws


def chained(
    keep: Callable[[Distribution, Distribution, int], float], proposal: Proposal, laws: list[Distribution]
) -> float:
    """Expected kept tokens of a rule that goes token by token and keeps x, drawn from q, with `keep(p, q, x)`."""
    each = [keep(p, q, token) for p, q, token in zip(laws, proposal.distributions, proposal.tokens, strict=True)]
    return float(np.cumprod(each).sum())


def agreement(p: Distribution, q: Distribution, token: int) -> float:
    """The chance that the race of p has the winner `token`, given that the race of q with the same noise has.

    Both have it with probability 1 / Σ max(p / p(x), q / q(x)), since the smallest of exponentials with these
    rates wins both; dividing by q(x) leaves 1 / (1 + Σ max(0, p · q(x) / p(x) - q)).
    """
    ours = p.at(token)
    return 1 / (1 + p.excess(q, q.at(token) / ours).total) if ours else 0.0


def expected_block(proposal: Proposal, laws: list[Distribution]) -> float:
    """Expected kept tokens of the block rule: the sum over i of the chance that prefix i or a longer one passes."""
    shares = block_shares(proposal, laws.__getitem__)
    passes = [
        keep_probability(kept, share, proposal, laws.__getitem__) for kept, share in enumerate(shares) if kept > 0
    ]
    none_from = np.cumprod(1 - np.array(passes[::-1]))
    return float((1 - none_from).sum())


if __name__ == "__main__":
    main()
