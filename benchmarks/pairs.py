"""A pair of files for benchmarks that look inside a round: both contexts, and prompts of three kinds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from specdec_cli.llama.chat_template import render_messages
from specdec_cli.llama.context import Context
from specdec_cli.llama.context_options import ContextOptions
from specdec_cli.llama.devices import usable_cpus
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.placement import Placement
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.llama.weights import Weights, load_weights

PROMPTS = {
    "code": "Write a Python class for a bank account with deposit, withdraw and transfer methods and docstrings.",
    "prose": "Write a short story about a lighthouse keeper who finds a message in a bottle.",
    "questions": "Answer each in a few sentences: Why is the sky blue? How do vaccines work? What causes the tides?",
}


@dataclass(frozen=True, slots=True)
class Models:
    """A target and a draft, ready to evaluate."""

    weights: Weights
    target: Context
    draft: Context
    tokenizer: Tokenizer
    shared: int
    """Ids that both vocabularies have."""

    def prompt(self, name: str) -> list[int]:
        """Tokens of one of `PROMPTS`, as a question to the target."""
        return self.prompt_of(PROMPTS[name])

    def prompt_of(self, question: str) -> list[int]:
        """Tokens of `question` to the target."""
        text = render_messages(self.weights, self.tokenizer, [{"role": "user", "content": question}])
        return self.tokenizer.encode(text)


@contextmanager
def opened_pair(target: Path, draft: Path, *, size: int = 1024, rows: int = 17) -> Iterator[Models]:
    """Both files loaded, with caches for `size` tokens and `rows` rows of logits a pass."""
    options = ContextOptions(size=size, batch=512, rows=rows, threads=usable_cpus())
    with _opened(target, "target", options) as (weights, ours), _opened(draft, "draft", options) as (small, theirs):
        yield Models(weights, ours, theirs, Tokenizer(weights), min(weights.vocabulary_size, small.vocabulary_size))


@contextmanager
def _opened(path: Path, role: str, options: ContextOptions) -> Iterator[tuple[Weights, Context]]:
    interrupt = Interrupt()
    weights = load_weights(path, role, placement=Placement(), interrupt=interrupt, on_progress=lambda _: None)
    context = Context(weights, options, interrupt)
    try:
        yield weights, context
    finally:
        context.close()
        weights.close()
