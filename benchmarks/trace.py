"""What --trace costs: the same answers with and without it, by turns in one process.

    python -m benchmarks.trace --target big.gguf --draft lookup        (or --draft small.gguf)

"dearer" is the median over turns of how much longer the traced answer took, prompt not counted, with its quartiles:
the noise of the machine is in it. "writing" is the share of its time that an answer spent on making records and on
writing them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specdec_cli.bench.running import run
from specdec_cli.catalog import Pair, to_draft
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.step import Step
from specdec_cli.generation import Request
from specdec_cli.limits import DraftTokens
from specdec_cli.session import Session
from specdec_cli.settings import Listener, ModelSettings
from specdec_cli.traces.writing import TraceWriter
from specdec_cli.tracing import Tracer

PROMPT: Final = (
    "Write a Python class for a bank account with deposit and withdraw, then the same class with docstrings."
)
CHAINS: Final = {
    "T 0": SamplingChain(0),
    "T 1, default filters": SamplingChain(1),
    "T 1, no filters": SamplingChain(1, 0, 1, 0),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds of an answer without and with a trace, those in its writer, and the rounds and bytes of that one."""

    plain: float
    traced: float
    writing: float
    rounds: int
    size: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", required=True, help="as for specdec generate")
    parser.add_argument("--draft-tokens", nargs="+", default=["auto", "4"])
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    pair = Pair(arguments.target, to_draft(arguments.draft, Path()))
    settings = ModelSettings(threads=arguments.threads)
    print(f"{'':<22}{'γ':>5}{'dearer':>9}{'quartiles':>18}{'writing':>9}{'µs/round':>10}{'B/round':>9}")
    with Session(pair, settings, Listener(progress=lambda *_: None, notice=print)) as session:
        for name, chain in CHAINS.items():
            for given in arguments.draft_tokens:
                length: DraftTokens = "auto" if given == "auto" else int(given)
                request = Request(chain, 0, draft_tokens=length, max_tokens=arguments.max_tokens)
                print(
                    f"{name:<22}{given:>5}{row([turn(session, request) for _ in range(arguments.repeat)])}", flush=True
                )


def row(turns: list[Turn]) -> str:
    dearer = [each.traced / each.plain - 1 for each in turns]
    low, middle, high = statistics.quantiles(dearer, n=4)
    writing = statistics.median(each.writing / each.traced for each in turns)
    each = 1e6 * statistics.median(turn.writing / turn.rounds for turn in turns)
    size = statistics.median(turn.size / turn.rounds for turn in turns)
    return f"{middle:9.1%}{f'{low:.1%} .. {high:.1%}':>18}{writing:9.1%}{each:10.0f}{size:9.0f}"


def turn(session: Session, request: Request) -> Turn:
    """One answer without a trace and one with, the same tokens."""
    prompt = session.prompt_from_messages([{"role": "user", "content": PROMPT}])
    without = run(session, prompt, request)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        with TraceWriter(path, print) as writer:
            seconds: list[float] = []

            def watch(step: Step) -> None:
                started = time.perf_counter()
                writer.write(step)
                seconds.append(time.perf_counter() - started)

            generation = session.generate(prompt, request, watch)
            started = time.perf_counter()
            Tracer(writer).begin(generation, session)
            for _ in generation:
                pass
            Tracer(writer).end(generation)
            took = time.perf_counter() - started - generation.timing.prompt
        assert tuple(generation.tokens) == without.tokens, "a trace changes nothing"
        return Turn(without.seconds, took, sum(seconds), len(seconds), path.stat().st_size)


if __name__ == "__main__":
    main()
