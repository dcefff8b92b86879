"""Speculation under a grammar: what masking the draft brings, and what the grammar costs.

    python -m benchmarks.grammar --target big.gguf --draft small.gguf

The target answers with JSON of a schema: plainly, with a draft that knows the grammar, and with one that does not.
The law of the text is the same three times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.pairs import Models, opened_pair
from benchmarks.rules import FILTERS
from specdec_cli.core.decode import Round, StopRule, autoregress, speculate
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.draft_temperature import to_draft_chain
from specdec_cli.core.noise import Chance
from specdec_cli.core.past import Mask, Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.stats import Counters
from specdec_cli.core.verify import RULES, Proposal
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.llama.grammar import load_grammar
from specdec_cli.llama.json_schema import json_schema_to_grammar
from specdec_cli.llama.token_texts import TokenTexts

BOOKS: Final = {
    "type": "array",
    "minItems": 5,
    "maxItems": 5,
    "items": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "author": {"type": "string"},
            "year": {"type": "integer"},
            "genres": {"type": "array", "items": {"enum": ["novel", "poetry", "science", "history"]}},
        },
        "required": ["title", "author", "year", "genres"],
    },
}
SCHEMA: Final = {"type": "object", "properties": {"books": BOOKS}, "required": ["books"]}
QUESTION: Final = "List five books, with title, author, year and genres."
KINDS: Final = ("plain", "masked draft", "unmasked draft")


class UnmaskedDrafter(ModelDrafter):
    """Proposes what it would say without the grammar."""

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        return super().propose(context, Past(past.tokens, window=past.window), enough, chance)


@dataclass(frozen=True, slots=True)
class Run:
    """One answer."""

    counters: Counters
    seconds: float
    text: str
    ended: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path, required=True)
    parser.add_argument("--draft-tokens", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with opened_pair(arguments.target, arguments.draft) as models:
        texts = TokenTexts(models.weights)
        grammar, _ = json_schema_to_grammar(json.dumps(SCHEMA))
        mask = load_grammar(models.weights, grammar, name="the schema", texts=texts)
        print(f"{arguments.target.name} + {arguments.draft.name}, γ = {arguments.draft_tokens}, JSON of a schema\n")
        print(
            f"{'filters':<10}{'':<16}{'tokens/s':>9}{'speed-up':>10}{'α':>7}{'tokens/round':>14}{'ended and parse':>16}"
        )
        for name, chain in FILTERS.items():
            runs: dict[str, list[Run]] = {kind: [] for kind in KINDS}
            for seed in range(arguments.repeat):
                for kind in KINDS:
                    runs[kind].append(run(models, chain, mask, kind, seed, arguments.draft_tokens))
            show(name, runs)


def run(models: Models, chain: SamplingChain, mask: Mask, kind: str, seed: int, length: int) -> Run:
    """An answer of `kind`; the prompt is not timed."""
    prompt = models.prompt_of(QUESTION)
    for model in (models.target, models.draft):
        model.rewind(0)
        model.extend(prompt[:-1], rows=0)
    rule = RULES["block"]
    common: dict[str, Any] = {"chain": chain, "budget": 500, "is_end": models.tokenizer.is_end, "mask": mask}
    rounds: Generator[Round, None, None]
    if kind == "plain":
        rounds = autoregress(models.target, prompt, noise=rule.noise(seed), **common)
    else:
        drafter_of = ModelDrafter if kind == "masked draft" else UnmaskedDrafter
        draft_chain = to_draft_chain(chain)
        drafter = drafter_of(models.draft, draft_chain, vocabulary=models.shared, capacity=models.draft.size)
        enough = FixedLength(length)
        rounds = speculate(models.target, drafter, prompt, noise=rule.noise(seed), enough=enough, rule=rule, **common)
    counters, text, ended = Counters(), b"", False
    started = time.perf_counter()
    for round_ in rounds:
        counters.add(round_)
        ended = round_.ended
        text += b"".join(models.tokenizer.piece(token) for token in round_.tokens)
    return Run(counters, time.perf_counter() - started, text.decode("utf-8", "replace"), ended)


def show(filters: str, runs: dict[str, list[Run]]) -> None:
    plain = [each.counters.tokens / each.seconds for each in runs["plain"]]
    for kind, each in runs.items():
        speeds = [one.counters.tokens / one.seconds for one in each]
        ratio = statistics.median(speed / base for speed, base in zip(speeds, plain, strict=True))
        alphas = [one.counters.alpha for one in each if one.counters.alpha is not None]
        alpha = f"{statistics.median(alphas):7.2f}" if alphas else f"{'n/a':>7}"
        per_round = statistics.median(one.counters.tokens_per_round or 0 for one in each)
        ended = [one.text for one in each if one.ended]
        parsed = f"{sum(map(_parses, ended))} of {len(ended)}"
        figures = f"{statistics.median(speeds):9.1f}{ratio:9.2f} ×{alpha}{per_round:14.2f}{parsed:>16}"
        print(f"{filters:<10}{kind:<16}{figures}", flush=True)


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    main()
