"""What lookup costs a token, whatever the length of the context: appended, and a proposal made after it.

    python -m benchmarks.lookup

`append` is the mean over the context as it is read; `propose` is one token more and a block, the mean of the last
thousand, and `slowest` the worst of them. `scan` finds the longest match, of up to 64 tokens, by looking at every
place of the context, as would have to be done for every token. Times are of the process, not of the clock.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Noise
from specdec_cli.core.past import Past
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.drafters.suffixes import SuffixAutomaton

LENGTHS: Final = (1 << 10, 1 << 15, 1 << 18)
MEASURED: Final = 1000
"""Tokens at the end of each context that are timed one by one."""
LONGEST_SCANNED: Final = 64
"""Where the scan leaves off comparing, so that it ends on a text of one token too."""
CHANCE: Final = Noise(0).round(0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draft-tokens", type=int, default=8)
    length = parser.parse_args().draft_tokens
    heads = ("tokens", "append", "propose", "slowest", "scan", "index MB")
    print(f"microseconds a token; γ = {length}\n\n{'text':<18}" + "".join(f"{head:>12}" for head in heads))
    for name, text in texts(max(LENGTHS)).items():
        for size in LENGTHS:
            append, propose, slowest = measured(text[:size], length)
            scanned, held = scan(text[:size]), index_bytes(text[:size]) / 1e6
            print(
                f"{name:<18}{size:12,}{append:12.1f}{propose:12.1f}{slowest:12.0f}{scanned:12.0f}{held:12.1f}",
                flush=True,
            )


def texts(size: int) -> dict[str, list[int]]:
    """Tokens of several kinds, [size] each."""
    rng = np.random.default_rng(1)
    phrase = rng.integers(0, 50_000, 100)
    code = np.frombuffer("".join(path.read_text("utf-8") for path in library()).encode(), np.uint8)
    kinds = {
        "random, 50000": rng.integers(0, 50_000, size),
        "random, 4": rng.integers(0, 4, size),
        "one token": np.ones(size, int),
        "one phrase": np.resize(phrase, size),
        "bytes of code": np.resize(code, size),
    }
    return {name: tokens.tolist() for name, tokens in kinds.items()}


def library() -> list[Path]:
    """Some source code that every reader has."""
    return sorted(Path(argparse.__file__).parent.glob("[a-c]*.py"))


def measured(text: Sequence[int], length: int) -> tuple[float, float, float]:
    """Microseconds: the mean of an append, and of a proposal after it, and the most that both took."""
    drafter = LookupDrafter()
    head = len(text) - min(MEASURED, len(text) // 2)
    context = list(text[:head])
    appending = seconds(lambda: drafter.prefill(context))
    each = []
    for token in text[head:]:
        context.append(token)
        each.append(seconds(lambda: drafter.propose(context, Past(), FixedLength(length), CHANCE)))
        drafter.rewind(len(context) - 1)
    return 1e6 * appending / head, 1e6 * sum(each) / len(each), 1e6 * max(each)


def scan(text: Sequence[int]) -> float:
    """Microseconds to find the longest earlier match at the end of `text` by looking at every place."""
    backwards = text[::-1]

    def common(start: int) -> int:
        end = min(LONGEST_SCANNED, len(text) - start)
        return next((length for length in range(end) if backwards[start + length] != backwards[length]), end)

    def look() -> tuple[int, int]:
        return max((common(start), -start) for start in range(1, len(text)))

    return 1e6 * seconds(look)


def index_bytes(text: Sequence[int]) -> int:
    tracemalloc.start()
    index = SuffixAutomaton(text)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del index
    return held


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
