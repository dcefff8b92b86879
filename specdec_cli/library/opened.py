"""A pair that a program works with: answers told round by round, and what both models say of a text."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Self, TypeGuard, Unpack
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from specdec_cli.catalog import Pair
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.core.step import Step
from specdec_cli.errors import ModelError, UsageError
from specdec_cli.generation import FinishReason, Generation, Grammar, Request
from specdec_cli.library.laws import Position, read_positions
from specdec_cli.library.wishes import Sampling, to_chain_options, to_request_options
from specdec_cli.limits import DraftTokens
from specdec_cli.llama.chat_template import Message
from specdec_cli.llama.gbnf import check_grammar
from specdec_cli.session import Session

Prompt = str | Sequence[int] | Sequence[Mapping[str, str]]
"""A text to continue as it stands, its tokens, or messages to answer by the target's chat template."""


class Answer:
    """An answer in the making: an iterator of its rounds; the attributes follow along. A loop may stop and go on later.

    A round is a `Step` with its proposal, p, q, draws and decisions. Going on raises ModelError if a model fails, or if
    a later answer of the same pair ended this one.
    """

    def __init__(self, generation: Generation, steps: deque[Step]) -> None:
        self._generation = generation
        self._steps = steps
        self._rounds = iter(generation)

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        while not self._steps:
            next(self._rounds)  # its last item may be text that was held back, and no round
        return self._steps.popleft()

    def finish(self) -> Self:
        """Produce what is left of it."""
        for _ in self:
            pass
        return self

    def close(self) -> None:
        """End it as it is. As long as it goes on, a first Ctrl-C ends the answer and not the program."""
        self._generation.close()

    @property
    def text(self) -> str:
        """What was said so far; the last round may have begun a character, or a stop string, that is held back."""
        return self._generation.text

    @property
    def tokens(self) -> list[int]:
        """The emitted tokens."""
        return self._generation.tokens

    @property
    def prompt_tokens(self) -> int:
        """How many tokens the prompt has."""
        return self._generation.prompt_tokens

    @property
    def request(self) -> Request:
        """All that was asked for, seed and sampling chain too."""
        return self._generation.request

    @property
    def counters(self) -> Counters:
        """What was drafted, examined and accepted."""
        return self._generation.counters

    @property
    def timing(self) -> Timing:
        """The seconds that each part took."""
        return self._generation.timing

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended: stop, length, context or interrupted (Ctrl-C); None while it goes on."""
        return self._generation.finish_reason


class OpenPair:
    """A loaded pair; use it in a `with`, or call `close`. One answer at a time: a new one ends that before it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._readings: WeakSet[Generator[Position, None, None]] = WeakSet()
        self._closed = False

    @property
    def pair(self) -> Pair:
        """The files and drafters that were opened."""
        return self.session.pair

    @property
    def vocabulary_size(self) -> int:
        """How many token ids the target has."""
        return self.session.target.vocabulary_size

    def to_tokens(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt.

        Raises:
            UsageError: it holds what is no token.
            ModelError: the target has no chat template for these messages.
        """
        self._check_open()
        if isinstance(prompt, str):
            return self.session.prompt_from_text(prompt)
        messages = [each for each in prompt if _is_message(each)]
        if messages and len(messages) == len(prompt):
            return self.session.prompt_from_messages(messages)
        size = self.vocabulary_size
        tokens = [int(each) for each in prompt if isinstance(each, int | np.integer) and 0 <= each < size]
        if len(tokens) == len(prompt):
            return tokens
        raise UsageError(
            f"a prompt is a text, or messages, or tokens in 0..{size - 1}",
            hint='a message has a "role" and a "content"',
        )

    def to_text(self, tokens: Sequence[int]) -> str:
        """What tokens print, control tokens nothing; what is not UTF-8 becomes U+FFFD."""
        self._check_open()
        return b"".join(map(self.session.tokenizer.piece, self.to_tokens(tokens))).decode("utf-8", "replace")

    def generate(
        self,
        prompt: Prompt,
        *,
        seed: int | None = None,
        max_tokens: int | None = None,
        draft_tokens: DraftTokens | None = None,
        rule: str | None = None,
        draft_temperature: float | str | None = None,
        stop: Sequence[str] = (),
        grammar: str | None = None,
        **sampling: Unpack[Sampling],
    ) -> Answer:
        """An answer, produced as it is iterated. Options are those of `specdec generate`; a `grammar` is GBNF itself.

        Raises:
            UsageError: an option is out of range, or the prompt is empty or does not fit.
            ModelError: the pair cannot be used for this.
        """
        tokens = self.to_tokens(prompt)
        options = to_request_options(seed, max_tokens, draft_tokens, rule, draft_temperature, stop)
        if grammar is not None:
            check_grammar(grammar, "grammar")
            options["grammar"] = Grammar(grammar, "grammar")
        request = Request(chain=self.session.chain(to_chain_options(sampling)), **options)
        steps: deque[Step] = deque()
        return Answer(self.session.generate(tokens, request, steps.append), steps)

    def distributions(
        self,
        text: Prompt,
        *,
        start: int = 1,
        draft_temperature: float | str | None = None,
        **sampling: Unpack[Sampling],
    ) -> Iterator[Position]:
        """p and q at each place of `text` from `start` on, and behind its end, as it would be met in an answer.

        Going on raises ModelError if a model fails.

        Raises:
            UsageError: an option is out of range, or the text is empty or does not fit.
            ModelError: the target has no chat template for these messages.
        """
        tokens = self.to_tokens(text)
        options = to_request_options(0, None, None, None, draft_temperature, ())
        request = Request(chain=self.session.chain(to_chain_options(sampling)), **options)
        reading = read_positions(self.session, tokens, self.session.complete(request), start)
        self._readings.add(reading)
        return reading

    def probabilities(self, law: Distribution) -> npt.NDArray[np.float64]:
        """`law` as a vector over all token ids [vocabulary]; it sums to 1."""
        vector = np.zeros(self.vocabulary_size)
        vector[slice(law.weights.size) if law.ids is None else law.ids] = law.weights
        vector /= vector.sum()
        return vector

    def close(self) -> None:
        """Free both models; what was yielded stays valid."""
        if not self._closed:
            for reading in list(self._readings):
                reading.close()
            self._closed = True
            self.session.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ModelError("this pair is closed", hint="open it again with open_pair")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_message(given: object) -> TypeGuard[Message]:
    return isinstance(given, Mapping) and all(isinstance(given.get(key), str) for key in ("role", "content"))
