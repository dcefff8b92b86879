"""A loaded and checked pair, and the answers that it generates. Every command that touches models goes through here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from specdec_cli.catalog import Pair
from specdec_cli.context_size import choose_size
from specdec_cli.core.costs import Costs
from specdec_cli.core.draft_length import LONGEST, AdaptiveLength, FixedLength
from specdec_cli.core.past import Mask
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.step import Step
from specdec_cli.drafters.chain import ExhaustibleDrafter
from specdec_cli.drafting import DraftModel, Material, open_drafter
from specdec_cli.errors import UsageError
from specdec_cli.generation import Generation, Request
from specdec_cli.limits import DraftTokens
from specdec_cli.llama.caches import Caches, Need
from specdec_cli.llama.chat_template import Message, encode_messages
from specdec_cli.llama.context import Context
from specdec_cli.llama.gguf import read_vocabulary
from specdec_cli.llama.grammar import load_grammar
from specdec_cli.llama.infill import encode_infill
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.loading import load_pair
from specdec_cli.pair_costs import PairCosts
from specdec_cli.pairs.here import as_it_holds_here, to_defaults, to_settings, with_draft_threads
from specdec_cli.sampling_settings import to_chain
from specdec_cli.settings import Listener, ModelSettings


class Session:
    """A pair, loaded by `specdec_cli.loading`, whose errors it raises."""

    def __init__(self, pair: Pair, settings: ModelSettings, listener: Listener) -> None:
        self._listener = listener
        self.pair = pair = as_it_holds_here(pair, listener.notice)
        self.settings = to_settings(settings, pair)
        self.interrupt = Interrupt()
        self.remembered: Sequence[Sequence[int]] = ()
        self._answer: Generation | None = None
        self._noticed: set[str] = set()
        started = time.perf_counter()
        with self.interrupt:
            self._loaded = loaded = load_pair(pair, self.settings, self.interrupt, listener)
        self.settings = with_draft_threads(self.settings, shares_cpu=loaded.plan.shares_cpu)
        self.load_seconds = time.perf_counter() - started
        self.target, self.draft, self.tokenizer = loaded.target, loaded.draft, loaded.tokenizer
        self.texts, self.brought = loaded.texts, loaded.brought
        self._caches = Caches(self.settings, self.interrupt, loaded.weights)
        self._costs_by_threads: dict[tuple[int | None, ...], PairCosts] = {}

    @cached_property
    def fingerprint(self) -> bytes:
        """Of the target's vocabulary, for `specdec_cli.memory`; 0.1 s that only who needs it should take."""
        return read_vocabulary(self.pair.target, "target").fingerprint

    def chain(self, given: Mapping[str, Any]) -> SamplingChain:
        """The sampling chain of what the user says, see `specdec_cli.sampling_settings`, and of the target's file.

        Raises:
            UsageError: a value is outside its range, or a text is not one token.
        """
        context = max(self.target.trained_context, self.settings.ctx_size or 0)
        return to_chain(given, self.brought, self.texts, context=context)

    def prompt_from_messages(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of a prompt that asks for the next message, by the target's chat template.

        What a message holds is plain text, even if it reads like a control token.

        Raises:
            ModelError: there is no template, or it fails or refuses these messages.
        """
        return encode_messages(self.target, self.tokenizer, messages)

    def prompt_from_text(self, text: str) -> list[int]:
        """Tokens of plain text to continue."""
        return self.tokenizer.encode(text)

    def prompt_to_fill(self, before: str, after: str) -> list[int]:
        """Tokens of a prompt that asks for what is missing between two texts.

        Raises:
            ModelError: the target was not trained for that.
        """
        return encode_infill(self.target, self.tokenizer, before, after)

    def generate(
        self, prompt: Sequence[int], request: Request, watch: Callable[[Step], object] | None = None
    ) -> Generation:
        """An answer to `prompt`, produced as it is iterated. It ends the one before, and goes on from its caches.

        `watch` is told of each round, with all that decided on it.

        Raises:
            UsageError: the prompt is empty or does not fit the context, or the grammar cannot be used.
            ModelError: a context cannot be made.
            KeyboardInterrupt: Ctrl-C before it begins.
        """
        if not prompt:
            raise UsageError("the prompt is empty", hint="this model has no token to begin a text from nothing")
        self._end_answer()
        try:
            with self.interrupt:
                self._answer = self._open(prompt, self.complete(request), watch)
            self.interrupt.check()
        finally:
            self.interrupt.lower()
        return self._answer

    def _end_answer(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def change_threads(self, threads: int, draft_threads: int, batch_size: int) -> None:
        """Let later answers run so; the models stay loaded, and their caches are emptied."""
        self._end_answer()
        self._caches.close()
        self.settings = replace(self.settings, threads=threads, draft_threads=draft_threads, batch_size=batch_size)
        self._caches = Caches(self.settings, self.interrupt, self._loaded.weights)

    def _open(self, prompt: Sequence[int], request: Request, watch: Callable[[Step], object] | None) -> Generation:
        held = self._caches.size(self.target)
        alone, size = (self._context_size(len(prompt), request.max_tokens, each) for each in (0, held))
        length = request.draft_tokens
        assert length is not None
        longest = LONGEST if length == "auto" else length
        mask: Mask | None = None
        if request.grammar is not None:
            mask = load_grammar(self.target, request.grammar.text, name=request.grammar.name, texts=self.texts)
        target, draft = self._open_contexts(size, longest)
        costs = self._costs.find(target, draft, prompt[0]) if length == "auto" else None
        for complaint in self._caches.restore():  # measuring empties them
            self._listener.notice(f"{complaint}: going on without it")
        drafter = self.open_drafter(request, draft) if length else None
        return Generation(
            prompt=prompt,
            request=request,
            length=_to_rule(length, costs),
            mask=mask,
            context_size=alone,  # what it held before makes no difference to an answer
            target=target,
            drafter=drafter,
            draft=draft,
            tokenizer=self.tokenizer,
            interrupt=self.interrupt,
            load_seconds=self.load_seconds,
            notice=self._notice_once,
            watch=watch,
        )

    def _notice_once(self, message: str) -> None:
        if message not in self._noticed:
            self._noticed.add(message)
            self._listener.notice(message)

    @property
    def defaults(self) -> dict[str, Any]:
        """What holds where a request says nothing."""
        return to_defaults(self.pair)

    def complete(self, request: Request) -> Request:
        """`request` with the `defaults` where it says nothing; without a draft its length is 0."""
        said = {name: getattr(request, name) for name in self.defaults}
        holds = {name: own if said[name] is None else said[name] for name, own in self.defaults.items()}
        return replace(request, **(holds if self.pair.drafters else holds | {"draft_tokens": 0}))

    @property
    def _costs(self) -> PairCosts:
        """Those of the present threads. Others stay: whoever comes back to their threads decides as before."""
        threads = self.settings.threads, self.settings.draft_threads
        if threads not in self._costs_by_threads:
            loaded, listener = self._loaded, self._listener
            costs = PairCosts(loaded, self.settings, listener.progress, self._notice_once)
            self._costs_by_threads[threads] = costs
        return self._costs_by_threads[threads]

    @property
    def costs(self) -> Costs | None:
        """The costs that `auto` decides by, once it has."""
        return self._costs.frozen

    def known_costs(self) -> Costs | None:
        """The costs of this pair on this machine, if this or an earlier run measured them; it takes no time."""
        return self._costs.known()

    def measure_costs(self, token: int) -> Costs:
        """The costs of passes over `token` as the machine is now; `auto` goes on to decide by what it knows.

        The caches are empty then.

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        self._end_answer()
        try:
            with self.interrupt:
                size = self._context_size(1, None, self._caches.size(self.target))
                return self._costs.now(*self._open_contexts(size, LONGEST), token)
        finally:
            self.interrupt.lower()

    def open_drafter(self, request: Request, draft: Context | None) -> ExhaustibleDrafter:
        """Who drafts for one answer, `draft` being the context of the draft model if there is one."""
        model = None
        if draft is not None and self.draft is not None:
            shared = min(self.draft.vocabulary_size, self.target.vocabulary_size)
            model = DraftModel(draft, shared, self.target, self._loaded.translation)
        known, vocabulary = self._loaded, self.target.vocabulary_size
        step = None if self.costs is None else self.costs.target[0]
        material = Material(known.predictions, known.tables, vocabulary, self.remembered, step)
        return open_drafter(self.pair.drafters, request, material, model)

    @property
    def context_limit(self) -> int:
        """The most tokens that a prompt and its answer can have together."""
        return self.settings.ctx_size or self.target.trained_context

    def _context_size(self, prompt: int, max_tokens: int | None, held: int) -> int:
        given, trained = self.settings.ctx_size, self.target.trained_context
        size = choose_size(prompt, max_tokens, given=given, trained=trained, held=held)
        if size > trained:
            self._notice_once(f"--ctx-size {size} is more than the {trained} tokens the target was trained for")
        return size

    def _open_contexts(self, size: int, longest: int) -> tuple[Context, Context | None]:
        """Contexts for a text of `size` tokens and blocks of `longest`; none of the draft where those are 0."""
        needs = [Need(self.target, size, rows=longest + 1, snapshots=min(longest, 1))]
        if longest and self.draft is not None:
            needs.append(Need(self.draft, min(size, self.draft.trained_context), rows=1, snapshots=longest))
        target, *draft = self._caches.open(needs)
        return target, draft[0] if draft else None

    def save_caches(self, folder: Path) -> None:
        """Write what the caches hold into files of `folder`, each whole or not at all, to go on from in a later run.

        Raises:
            UsageError: they cannot be written.
            KeyboardInterrupt: Ctrl-C before all were.
        """
        try:
            with self.interrupt:
                for weights in self._loaded.weights:
                    self._caches.save(weights, folder)
                    self.interrupt.check()
        finally:
            self.interrupt.lower()

    def load_caches(self, folder: Path) -> None:
        """Let the first answer go on from caches that were saved in `folder`; without them where they do not fit."""
        for weights in self._loaded.weights:
            try:
                self._caches.load(weights, folder)
            except UsageError as error:
                self._listener.notice(f"{error.message}: going on without it")

    def close(self) -> None:
        """Free both models and their caches, and leave the workers."""
        self._end_answer()
        self._caches.close()
        self._loaded.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _to_rule(length: DraftTokens, costs: Costs | None) -> FixedLength | AdaptiveLength | None:
    if isinstance(length, int):
        return FixedLength(length) if length else None
    assert costs is not None
    return AdaptiveLength(costs)
