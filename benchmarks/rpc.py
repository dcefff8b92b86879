"""What speculation brings when the target is on other machines: plain decoding and auto, by the delay of the network.

    python -m benchmarks.rpc --target big.gguf --draft small.gguf --json rpc.json --plot rpc.svg

The other machines are `specdec worker` processes of this one, which work in turn and so share its cores, each behind
a proxy of benchmarks/delay.py. For each delay the pair is loaded, its target on the workers and its draft here, and
specdec measures what passes cost, as it does for anybody; then plain decoding and `--draft-tokens auto` take turns on
each text. Speeds are medians, counted from the first round on; speed-ups are medians over turns, with the lowest and
the highest. Run it on an otherwise idle machine.

Threads of OpenMP spin for a while when their work is done, which takes the cores from the process whose turn it is;
on machines of their own they would not. So GOMP_SPINCOUNT is 2000 in all of them, unless it is set already.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.auto import CHAINS, PROMPTS
from benchmarks.delay import LOOPBACK, Proxy
from benchmarks.rpc_report import HEADER, Cell, Network, Report, to_costs, to_means, to_row
from specdec_cli.bench.facts import find_machine
from specdec_cli.catalog import Pair, to_draft
from specdec_cli.core.stats import Counters
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.errors import ModelError
from specdec_cli.generation import Request
from specdec_cli.limits import DraftTokens
from specdec_cli.llama.devices import usable_cpus
from specdec_cli.llama.greeting import greet
from specdec_cli.session import Session
from specdec_cli.settings import Listener, ModelSettings, Placing

PATIENCE: Final = 60.0
"""Seconds until a worker that has not come up never will."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", required=True, help="as for specdec generate, with a model")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=usable_cpus(), help="of each worker, and of the draft")
    parser.add_argument("--delays", type=float, nargs="+", default=[0, 1, 5, 20], help="milliseconds each way")
    parser.add_argument("--tokens", type=int, default=128, help="of an answer, at most")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--prompts", nargs="+", choices=PROMPTS, default=list(PROMPTS))
    parser.add_argument("--temperatures", nargs="+", choices=CHAINS, default=list(CHAINS))
    parser.add_argument("--json", type=Path, help="write what was measured there; benchmarks/rpc_plot.py draws it")
    parser.add_argument("--plot", type=Path, help="draw it, an .svg or a .png")
    arguments = parser.parse_args()
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    report = Report(to_facts(arguments), [])
    print(*report.facts, "", HEADER, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as cache, workers(arguments.workers, arguments.threads) as ports:
        os.environ["XDG_CACHE_HOME"] = cache  # costs of a made-up network are nobody else's
        for delay in sorted(arguments.delays):
            report.networks.append(measure(ports, delay, arguments))
            if arguments.json:
                report.write(arguments.json)
    print("", *map(to_costs, report.networks), "", *to_means(report), sep="\n")
    if arguments.plot:
        from benchmarks.rpc_plot import draw  # needs matplotlib

        draw(report, arguments.plot)


def to_facts(arguments: argparse.Namespace) -> list[str]:
    names = " + ".join(Path(each).name for each in (arguments.target, *arguments.draft.split(",")))
    machine = find_machine()
    return [
        f"{names}; target on {arguments.workers} workers, draft local, {arguments.threads} threads each",
        f"{machine.cpu}, {machine.cores} cores usable, {machine.system}; "
        f"llama-cpp-python {machine.llama_cpp_python}, specdec {machine.specdec}",
        f"up to {arguments.tokens} tokens an answer, {arguments.repeats} turns with seeds from 0; "
        "temperature 1 without filters",
    ]


@contextmanager
def workers(count: int, threads: int) -> Iterator[list[int]]:
    """Ports of so many workers on this machine."""
    with ExitStack() as stack:
        ports = [stack.enter_context(worker(threads)) for _ in range(count)]
        for port in ports:
            wait_for(port)
        yield ports


@contextmanager
def worker(threads: int) -> Iterator[int]:
    with socket.create_server((LOOPBACK, 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "specdec_cli", "worker", "--port", str(port), "--threads", str(threads), "--quiet"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


def wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(ModelError):
            greet(f"{LOOPBACK}:{port}")
            return
        time.sleep(0.1)
    raise SystemExit(f"the worker at port {port} does not come up")


def measure(ports: Sequence[int], delay: float, arguments: argparse.Namespace) -> Network:
    """All cells behind a delay of so many milliseconds each way."""
    pair = Pair(arguments.target, to_draft(arguments.draft, Path()))
    listener = Listener(progress=lambda *_: None, notice=lambda text: print(f"({text})"))
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(port, delay / 1000)) for port in ports]
        placing = Placing(rpc=tuple(each.endpoint for each in proxies))
        settings = ModelSettings(threads=arguments.threads, draft_threads=arguments.threads, placing=placing)
        session = stack.enter_context(Session(pair, settings, listener))
        bench = Bench(session, proxies, arguments.tokens)
        bench.run(arguments.temperatures[0], arguments.prompts[0], "auto", 0)  # warms up, and measures the costs
        costs = session.costs
        assert costs is not None
        network = Network(delay, list(costs.target), list(costs.drafts[ModelDrafter.name]), [])
        for temperature in arguments.temperatures:
            for text in arguments.prompts:
                network.cells.append(bench.cell(temperature, text, arguments.repeats))
                print(to_row(network, network.cells[-1]), flush=True)
    return network


@dataclass(frozen=True, slots=True)
class Run:
    """An answer: its speed in tokens a second, its counters, and how often it waited for a worker."""

    speed: float
    counters: Counters
    exchanges: int


@dataclass(frozen=True, slots=True)
class Bench:
    """A loaded pair whose target is behind `proxies`."""

    session: Session
    proxies: Sequence[Proxy]
    tokens: int

    def cell(self, temperature: str, text: str, repeats: int) -> Cell:
        """Plain decoding and auto in turns."""
        plain, auto = [], []
        for seed in range(repeats):
            plain.append(self.run(temperature, text, 0, seed))
            auto.append(self.run(temperature, text, "auto", seed))
        counters = Counters()
        for each in auto:
            counters.include(each.counters)
        return Cell(
            temperature,
            text,
            [each.speed for each in plain],
            [each.speed for each in auto],
            drafted=counters.drafted_per_round or 0.0,
            tokens=counters.tokens_per_round or 0.0,
            alpha=counters.expected_alpha,
            exchanges=sum(each.exchanges for each in auto) / max(1, sum(each.counters.rounds - 1 for each in auto)),
        )

    def run(self, temperature: str, text: str, length: DraftTokens, seed: int) -> Run:
        prompt = self.session.prompt_from_messages([{"role": "user", "content": PROMPTS[text]}])
        request = Request(CHAINS[temperature], seed, draft_tokens=length, max_tokens=self.tokens)
        generation = self.session.generate(prompt, request)
        rounds = iter(generation)
        next(rounds)  # workers read the prompt as long as nobody waits for its answer: it is in the first round
        first, before, started = generation.counters.tokens, self._exchanges(), time.perf_counter()
        for _ in rounds:
            pass
        seconds = time.perf_counter() - started
        counters = generation.counters
        if counters.rounds < 2:
            raise SystemExit(f"the answer to {text} ends in its first round: there is nothing to measure")
        return Run((counters.tokens - first) / seconds, counters, self._exchanges() - before)

    def _exchanges(self) -> int:
        return sum(each.traffic().exchanges for each in self.proxies)


if __name__ == "__main__":
    main()
