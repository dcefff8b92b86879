"""What speculation brings on a pair of files, and what specdec itself costs.

    python -m benchmarks.generate --target big.gguf --draft small.gguf

Runs that are compared alternate in one process, on one loaded pair; every figure is a median. Run it on an
otherwise idle machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import llama_cpp
import numpy as np

from specdec_cli.catalog import Pair
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.core.verify import RULES
from specdec_cli.generation import Request
from specdec_cli.limits import DEFAULT_RULE
from specdec_cli.llama.devices import usable_cpus
from specdec_cli.session import Session
from specdec_cli.settings import Listener, ModelSettings

PROMPTS = {
    "code": "Write a Python class for a bank account with deposit, withdraw and transfer methods and docstrings.",
    "prose": "Write a short story about a lighthouse keeper who finds a message in a bottle.",
    "json": "Write a JSON array of five books, each with title, author, year and genres.",
}
GREEDY, UNFILTERED = SamplingChain(0), SamplingChain(1, 0, 1, 0)
EMPTY_APP = """
import typer
app = typer.Typer()
@app.command()
def one() -> None: "One."
@app.command()
def two() -> None: "Two."
app()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", required=True, help="a path, or lookup")
    parser.add_argument("--draft-tokens", type=int, default=5)
    parser.add_argument("--rule", choices=RULES, default=DEFAULT_RULE)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--prompt", choices=PROMPTS, default="code")
    parser.add_argument("--only", choices=("speed", "memory", "help"), help="one part instead of all three")
    arguments = parser.parse_args()
    pair = Pair(arguments.target, "lookup" if arguments.draft == "lookup" else Path(arguments.draft))
    names = [pair.target.name, "lookup" if pair.draft_model is None else pair.draft_model.name]
    print(f"{' + '.join(names)}; {platform.processor() or platform.machine()}, {usable_cpus()} CPUs")
    print(f"{arguments.prompt} prompt, γ = {arguments.draft_tokens}, {arguments.max_tokens} tokens at most")
    print(f"{arguments.rule} rule\n")
    if arguments.only in (None, "memory"):
        measure_memory(pair, arguments)
    if arguments.only in (None, "speed"):
        measure_speed(pair, arguments)
    if arguments.only in (None, "help"):
        measure_help()


def measure_speed(pair: Pair, arguments: argparse.Namespace) -> None:
    """Speculation, plain decoding and a bare loop over llama_decode, alternating."""
    with Session(pair, ModelSettings(), Listener(progress=lambda *_: None, notice=print)) as session:
        prompt = session.prompt_from_messages([{"role": "user", "content": PROMPTS[arguments.prompt]}])

        def run(chain: SamplingChain, draft_tokens: int, seed: int) -> Run:
            length, rule = arguments.max_tokens, arguments.rule
            request = Request(chain, seed, draft_tokens=draft_tokens, max_tokens=length, rule=rule)
            generation = session.generate(prompt, request)
            started = time.perf_counter()
            for _ in generation:
                pass
            return Run(generation.counters, generation.timing, time.perf_counter() - started)

        for name, chain in (("temperature 0", GREEDY), ("temperature 1, no filters", UNFILTERED)):
            plain, fast, ratios = [], [], []
            for seed in range(arguments.repeat):
                plain.append(run(chain, 0, seed))
                fast.append(run(chain, arguments.draft_tokens, seed))
                ratios.append(fast[-1].speed / plain[-1].speed)
            print(f"{name}")
            for kind, runs in (("plain", plain), ("speculative", fast)):
                speed, share = (median(runs, figure) for figure in (lambda each: each.speed, lambda each: each.share))
                print(f"  {kind:<19} {speed:7.2f} tokens/s, sampling {share:.2%}")
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            print(f"  speed-up            {statistics.median(ratios):7.2f} × ({spread})")
            print_round(plain, fast, arguments.draft_tokens)

        ratios = []
        for _ in range(arguments.repeat):
            bare = bare_loop(session, prompt, arguments.max_tokens)
            ratios.append(run(GREEDY, 0, 0).speed / bare)
        print(f"--draft none against a bare loop of llama_decode and arg-max: {statistics.median(ratios):.3f} ×\n")


@dataclass(frozen=True)
class Run:
    """One answer; `wall` are the seconds from its prompt to its end, by the clock on the wall."""

    counters: Counters
    timing: Timing
    wall: float

    @property
    def speed(self) -> float:
        """Tokens a second, all that is not the prompt counted."""
        return self.counters.tokens / (self.wall - self.timing.prompt)

    @property
    def share(self) -> float:
        """The part of that time in which neither model ran."""
        return 1 - (self.timing.draft + self.timing.verify) / (self.wall - self.timing.prompt)


def print_round(plain: list[Run], fast: list[Run], draft_tokens: int) -> None:
    """What a round brings and what it costs, in plain steps: γ draft steps of c and a pass over γ + 1 tokens."""
    step = median(plain, lambda each: each.timing.verify / each.counters.rounds)
    v = median(fast, lambda each: each.timing.verify / each.counters.rounds) / step
    c = median(fast, lambda each: each.timing.draft / max(each.counters.drafted, 1)) / step
    alpha = median(fast, lambda each: each.counters.expected_alpha or 0.0)
    brings = median(fast, lambda each: each.counters.tokens_per_round or 0.0)
    print(f"  a round brings      {brings:7.2f} tokens (α {alpha:.2f})")
    parts = f"v({draft_tokens + 1}) {v:.2f} + {draft_tokens} × c {c:.2f}"
    print(f"  and costs           {v + draft_tokens * c:7.2f} plain steps: {parts}\n")


def median(runs: list[Run], figure: Callable[[Run], float]) -> float:
    return statistics.median(figure(each) for each in runs)


def bare_loop(session: Session, prompt: list[int], count: int) -> float:
    """Tokens a second of the least that any program could do: decode one token, take the largest logit."""
    params = llama_cpp.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_outputs_max, params.no_perf = 4096, 2048, 1, True
    params.n_threads = params.n_threads_batch = session.settings.threads
    context = llama_cpp.llama_init_from_model(session.target.model, params)
    size = session.target.vocabulary_size

    def decode(tokens: list[int]) -> int:
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(array, len(tokens)))
        return int(np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (size,)).argmax())

    decode(prompt[:-1])
    token, done, started = prompt[-1], 0, time.perf_counter()
    while done < count and not session.tokenizer.is_end(token):
        token = decode([token])
        done += 1
    passed = time.perf_counter() - started
    llama_cpp.llama_free(context)
    return done / passed


def measure_memory(pair: Pair, arguments: argparse.Namespace) -> None:
    """Peak memory of a run beside what llama.cpp reports for weights, caches and compute buffers.

    Comes before anything is loaded here: a child's peak includes that of its parent when it was forked.
    """
    command = [
        sys.executable,
        "-m",
        "specdec_cli",
        "generate",
        "-m",
        str(pair.target),
        "-d",
        str(pair.draft_model or "lookup"),
    ]
    command += ["-k", str(arguments.draft_tokens), "-n", "64", "--verbose", PROMPTS[arguments.prompt]]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        log.seek(0)
        buffers = [float(size) for size in re.findall(r"buffer size = +([\d.]+) MiB", log.read())]
    peak = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    print(f"peak memory {peak:.0f} MiB (exit {status}); weights, caches and compute buffers {sum(buffers):.0f} MiB")
    print(f"specdec's own: {peak - sum(buffers):.0f} MiB\n")


def measure_help() -> None:
    """`specdec --help` beside the help of an empty Typer app with two commands."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.py"
        empty.write_text(EMPTY_APP)
        commands = ([sys.executable, str(empty), "--help"], [str(Path(sys.executable).with_name("specdec")), "--help"])
        times: list[list[float]] = [[], []]
        for _ in range(25):
            for index, command in enumerate(commands):
                started = time.perf_counter()
                subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
                times[index].append(time.perf_counter() - started)
    empty_app, ours = (statistics.median(each) for each in times)
    print(
        f"specdec --help {1000 * ours:.0f} ms, an empty Typer app {1000 * empty_app:.0f} ms: {ours / empty_app:.2f} ×"
    )


if __name__ == "__main__":
    main()
