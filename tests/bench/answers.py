"""Answers that nobody gave: samples with the rounds, times and speeds that a test wants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specdec_cli.bench.facts import Facts, Machine, Memory, Model
from specdec_cli.bench.measuring import Measurement, Sample
from specdec_cli.bench.plan import Job, Plan
from specdec_cli.bench.prompts import BenchPrompt
from specdec_cli.bench.report import Report, to_rows
from specdec_cli.bench.running import Run
from specdec_cli.core.costs import Costs
from specdec_cli.core.decode import Round
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.core.verify import Kind
from specdec_cli.limits import DraftTokens
from specdec_cli.settings import ModelSettings

COSTS = Costs((1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4, 2.6), {"model": (0.1, 0.15)})
"""v rises by 0.2 a token, and c is 0.1."""
MODEL = Model("/models/big.gguf", "llama 1B F16", 2_000_000_000, "CPU")
FACTS = Facts(
    Machine("A CPU", 2, "Linux 6 x86_64", "3.12", "0.3.36", "0.1.0"),
    "mine",
    MODEL,
    Model("/models/small.gguf", "llama 0.1B F16", 200_000_000, "CPU"),
    "big.gguf on CPU",
    "small.gguf on CPU",
    Memory(3_000_000_000, 2_200_000_000, 100_000_000),
    ModelSettings(threads=2, draft_threads=1, lora=((Path("a.gguf"), 0.5),)),
)


def prompt(kind: str, number: int = 1) -> BenchPrompt:
    return BenchPrompt(kind, f"{kind} {number}", f"{kind}?")


def plain_rounds(count: int) -> list[Round]:
    return [Round(0, 0, Kind.BONUS, (7,), ())] * count


def round_of(drafted: int, accepted: int, *, source: str = "model") -> Round:
    """One that drafted so much and kept so much of it."""
    whole = accepted == drafted
    examined = drafted if whole else accepted + 1
    kind = Kind.BONUS if whole else Kind.CORRECTION
    return Round(drafted, accepted, kind, (7,) * (accepted + 1), (0.5,) * examined, source=source)


def run_of(rounds: Sequence[Round], seconds: float, *, sample: float = 0.0) -> Run:
    """Rounds that took so many seconds, of which the target took all but `sample` and a tenth for drafts."""
    counters = Counters()
    for each in rounds:
        counters.add(each)
    draft = 0.1 * seconds if counters.drafted else 0.0
    timing = Timing(draft=draft, verify=seconds - draft - sample, sample=sample)
    tokens = tuple(token for each in rounds for token in each.tokens)
    return Run(tokens, tuple(rounds), seconds, counters, timing, "length")


def sample(
    kind: str,
    length: DraftTokens,
    rounds: Sequence[Round],
    seconds: float,
    *,
    turn: int = 0,
    temperature: float = 0.0,
    number: int = 1,
) -> Sample:
    return Sample(Job(prompt(kind, number), turn, temperature, length), run_of(rounds, seconds))


def plan(*kinds: str, lengths: tuple[DraftTokens, ...] = (2, "auto"), repeat: int = 1) -> Plan:
    return Plan(
        prompts=tuple(prompt(kind) for kind in kinds),
        draft_tokens=lengths,
        temperatures=(0.0,),
        rule="block",
        repeat=repeat,
        max_tokens=64,
        seed=5,
        time_limit=300,
        raw=False,
    )


def report(samples: Sequence[Sample], *, costs: Costs = COSTS, measurement: Measurement | None = None) -> Report:
    """What is reported of `samples`."""
    found = measurement or Measurement(tuple(samples), len(samples))
    kinds = dict.fromkeys(each.job.prompt.kind for each in samples)
    return Report(plan(*kinds), FACTS, costs, found, to_rows(found, costs))


def three_ways(kind: str, speed_ups: tuple[float, float], *, turn: int = 0, temperature: float = 0.0) -> list[Sample]:
    """Plain decoding of 10 tokens a second, and γ = 2 and auto with these speed-ups."""
    fixed, auto = speed_ups
    rounds = [round_of(2, 2), round_of(2, 1), round_of(2, 0)]
    return [
        sample(kind, 0, plain_rounds(20), 2.0, turn=turn, temperature=temperature),
        sample(kind, 2, rounds, 0.6 / fixed, turn=turn, temperature=temperature),
        sample(kind, "auto", [*rounds, *plain_rounds(4)], 1.0 / auto, turn=turn, temperature=temperature),
    ]
