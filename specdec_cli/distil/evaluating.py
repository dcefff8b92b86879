"""What `specdec distil evaluate` asks: held-out prompts of each kind, by the bench that also measures pairs."""

from __future__ import annotations

from typing import Final

from specdec_cli.bench.plan import Plan
from specdec_cli.bench.prompts import BenchPrompt
from specdec_cli.distil.prompts import held_out_prompts

LENGTH: Final = 4
"""Tokens drafted a round: the rule then looks at four places in a row at most."""
TEMPERATURES: Final = (0.8, 0.0)
"""llama.cpp's default, where Σ min(p, q) is α; and greedy, where it is how often both find the same token likeliest."""


def to_plan(*, each_kind: int, max_tokens: int, seed: int) -> Plan:
    """Ask the first `each_kind` held-out prompts of each kind."""
    kinds: dict[str, list[BenchPrompt]] = {}
    for number, prompt in enumerate(held_out_prompts(), 1):
        group = kinds.setdefault(prompt.kind, [])
        if len(group) < each_kind:
            group.append(BenchPrompt(prompt.kind, f"held-out prompt {number}", prompt.text))
    return Plan(
        prompts=tuple(prompt for group in kinds.values() for prompt in group),
        draft_tokens=(LENGTH,),
        temperatures=TEMPERATURES,
        rule=None,
        repeat=1,
        max_tokens=max_tokens,
        seed=seed,
        time_limit=0,
        raw=False,
    )
