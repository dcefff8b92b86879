"""One answer in the making: rounds of tokens become text, counts and times, and an end with its reason."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

from specdec_cli.core.cached import keep_shared
from specdec_cli.core.decode import Round, autoregress, speculate
from specdec_cli.core.draft_length import AdaptiveLength, FixedLength
from specdec_cli.core.logprobs import TokenLogprobs
from specdec_cli.core.past import Mask
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.core.step import Observer, RoundSeconds, Step
from specdec_cli.core.text import Segment, TextStream
from specdec_cli.core.verify import RULES, Kind
from specdec_cli.drafters.chain import ExhaustibleDrafter
from specdec_cli.errors import ModelError
from specdec_cli.limits import DEFAULT_RULE, DraftTokens
from specdec_cli.llama.context import Context
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.tokenizer import Tokenizer

FinishReason = Literal["stop", "length", "context", "interrupted", "failed"]


@dataclass(frozen=True, slots=True)
class Grammar:
    """What an answer must follow: `text` in GBNF, and what messages call it, such as `grammar chess.gbnf`."""

    text: str
    name: str


@dataclass(frozen=True, slots=True)
class Request:
    """What an answer should be like. `max_tokens` None is as many as fit.

    `draft_tokens`, `rule`, one of `core.verify.RULES`, and `draft_temperature`, which is auto, same or a number, are
    what the pair says where they are None, or else the defaults; see `Session.complete`. `logprobs` is how many of
    the best alternatives to report for each token, None for nothing of the kind. Answers of one `seed` have noise
    that is independent of each other's if their `turn` differs.
    """

    chain: SamplingChain
    seed: int
    draft_tokens: DraftTokens | None = None
    max_tokens: int | None = None
    stops: tuple[str, ...] = ()
    rule: str | None = None
    draft_temperature: str | None = None
    grammar: Grammar | None = None
    logprobs: int | None = None
    turn: int = 0

    @property
    def noise_seed(self) -> int:
        """What the noise is keyed by, in 0..2^64 - 1: the seed itself in turn 0."""
        if self.turn == 0:
            return self.seed
        key = struct.pack("<2Q", self.seed, self.turn)
        return int.from_bytes(blake2b(key, digest_size=8, person=b"turn").digest(), "little")


class Generation:
    """Iterate it, once, for the text of each round, token by token with its kind; the attributes follow along.

    An item may be empty: its text waits for the rest of a character, or may be the start of a stop string.
    Without a `length` of blocks it is plain decoding. `draft` is the context of a draft model, None for a drafter
    that has none. Both contexts may hold any earlier text: what the prompt shares with it is not evaluated again.
    Prompt and answer have `context_size` tokens together at most, even if `target` has room for more. `notice` is
    told of a draft that was outgrown in every round, and `watch` of each round with all that decided on it.

    Raises:
        ModelError: llama.cpp failed, or another answer has begun; what was yielded before stays valid.
    """

    def __init__(
        self,
        *,
        prompt: Sequence[int],
        request: Request,
        length: FixedLength | AdaptiveLength | None,
        mask: Mask | None,
        context_size: int,
        target: Context,
        drafter: ExhaustibleDrafter | None,
        draft: Context | None,
        tokenizer: Tokenizer,
        interrupt: Interrupt,
        load_seconds: float,
        notice: Callable[[str], None],
        watch: Callable[[Step], object] | None = None,
    ) -> None:
        self.prompt_tokens = len(prompt)
        self.context_size = context_size
        self.counters = Counters()
        self.timing = Timing(load=load_seconds)
        self.finish_reason: FinishReason | None = None
        self.logprobs: list[TokenLogprobs] = []
        self.tokens: list[int] = []
        self.rounds: list[Round] = []
        self._prompt = prompt
        self.request = request
        self._length = length
        self._mask = mask
        self.target = target
        self._drafter = drafter
        self.draft = draft
        self._tokenizer = tokenizer
        self._interrupt = interrupt
        self._notice = notice
        adaptive = length if isinstance(length, AdaptiveLength) else None
        self._observer = None if watch is None else Observer(watch, adaptive)
        self._last_kind = Kind.BONUS
        self._text: TextStream[Kind] = TextStream(request.stops)
        self._told: list[str] = []
        self._running = self._run()
        self._whole = False

    @property
    def text(self) -> str:
        """All that was yielded so far."""
        return "".join(self._told)

    @property
    def draft_tokens(self) -> DraftTokens:
        """How many tokens are drafted a round; 0 for plain decoding."""
        if isinstance(self._length, AdaptiveLength):
            return "auto"
        return 0 if self._length is None else self._length.tokens

    def __iter__(self) -> Iterator[list[Segment[Kind]]]:
        yield from self._running
        if not self._whole:
            raise ModelError("this answer cannot go on", hint="a later one of the same session ended it")

    def close(self) -> None:
        """Leave the caches, which hold a beginning of prompt and text, to another answer; this one never goes on."""
        self._running.close()

    def break_off(self) -> list[Segment[Kind]]:
        """The engine failed, maybe in the middle of a round: the text that was held back. It never goes on."""
        self.finish_reason = self.finish_reason or ("interrupted" if self._interrupt.raised else "failed")
        return self._release()

    def _release(self) -> list[Segment[Kind]]:
        rest = self._text.finish(self._last_kind)
        self._told += [segment.text for segment in rest]
        return rest

    def _run(self) -> Generator[list[Segment[Kind]], None, None]:
        try:
            with self._interrupt, closing(self._answer()) as rounds:
                for segments in rounds:
                    self._told += [segment.text for segment in segments]
                    yield segments
        except KeyboardInterrupt:
            self.finish_reason = "interrupted"
        finally:
            self._interrupt.lower()  # one that came too late to matter is none of the next answer's
        rest = self._release()
        self._whole = True
        yield rest

    def _answer(self) -> Generator[list[Segment[Kind]], None, None]:
        self._read_prompt()
        rounds = self._rounds()
        try:
            while (told := self._tell(rounds)) is not None:
                yield told
                if self.finish_reason is not None:
                    return
                self._notice_exhausted()
        finally:
            rounds.close()
        self.finish_reason = "context" if self.counters.tokens != self.request.max_tokens else "length"

    def _read_prompt(self) -> None:
        """Let both caches hold all of the prompt but its last token."""
        started = time.perf_counter()
        keep_shared(self.target, self._prompt[:-1])
        self.target.extend(self._prompt[self.target.length : -1], rows=0)
        if self._drafter is not None:
            self._drafter.prefill(self._prompt)
        self.timing.prompt = time.perf_counter() - started

    def _rounds(self) -> Generator[Round, None, None]:
        room = self.context_size - self.prompt_tokens
        request = self.request
        rule, observer = RULES[request.rule or DEFAULT_RULE], self._observer
        noise = rule.noise(request.noise_seed)
        common: Any = {
            "chain": request.chain,
            "noise": noise if observer is None else observer.witness(noise),
            "watch": None if observer is None else observer.see,
            "budget": min(room, request.max_tokens or room),
            "is_end": self._tokenizer.is_end,
            "mask": self._mask,
            "logprobs": request.logprobs,
        }
        if self._drafter is None or self._length is None:
            return autoregress(self.target, self._prompt, **common)
        length = self._length
        learn = length.learn if isinstance(length, AdaptiveLength) else None
        return speculate(self.target, self._drafter, self._prompt, **common, enough=length, learn=learn, rule=rule)

    def _tell(self, rounds: Iterator[Round]) -> list[Segment[Kind]] | None:
        """The text of the next round, counted and timed; None if the budget is spent."""
        draft, verify = self.draft.seconds if self.draft else 0.0, self.target.seconds
        started = time.perf_counter()
        round_ = next(rounds, None)
        if round_ is None:
            return None
        segments, round_ = self._to_text(round_)
        place = self.prompt_tokens + self.counters.tokens
        self.counters.add(round_)
        self.logprobs += round_.logprobs
        self.tokens += round_.tokens
        self.rounds.append(round_)
        if round_.ended or self._text.stopped:
            self.finish_reason = "stop"
        drafting = self.draft.seconds - draft if self.draft else 0.0
        verifying = self.target.seconds - verify
        self.timing.draft += drafting
        self.timing.verify += verifying
        sampling = time.perf_counter() - started - drafting - verifying
        self.timing.sample += sampling
        if self._observer is not None:
            self._observer.finish(place, round_, segments, RoundSeconds(drafting, verifying, sampling))
        return segments

    def _to_text(self, round_: Round) -> tuple[list[Segment[Kind]], Round]:
        """The text of `round_`, and the round without the tokens that follow a stop string."""
        segments: list[Segment[Kind]] = []
        for index, (token, kind) in enumerate(zip(round_.tokens, round_.kinds, strict=True)):
            segments += self._text.feed(self._tokenizer.piece(token), kind)
            self._last_kind = kind
            if self._text.stopped:
                return segments, round_.cut(index + 1)
        return segments, round_

    def _notice_exhausted(self) -> None:
        if self._drafter is not None and self._drafter.exhausted:
            self._notice("the text outgrew the context of the draft: going on without it")
