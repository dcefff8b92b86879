"""A conversation: messages, and a session's answers to them. What is asked is kept only together with an answer.

A prompt is made anew from all messages for each answer; the session finds what its caches know of it. Where the
context is full the oldest turns go, and the system text stays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from specdec_cli.core.step import Step
from specdec_cli.errors import UsageError
from specdec_cli.generation import Generation, Grammar
from specdec_cli.llama.chat_template import Message
from specdec_cli.question import Wishes, to_request
from specdec_cli.session import Session

ROOM: Final = 512
"""Tokens that are kept free for an answer without --max-tokens. With it that many; a quarter of the context at most."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Pending:
    """An answer in the making: to which question, and behind which turns; those before are forgotten with it."""

    generation: Generation
    question: str
    turns: Sequence[Turn]


class Conversation:
    """Messages and the answers to them. Turns that have to go are left once an answer without them is kept.

    `wishes` and `grammar` hold for the answers that begin after they are set; `turn` counts the answers begun so
    far, which is the position of the noise. `watch` is told of each round of all answers.
    """

    def __init__(
        self,
        session: Session,
        wishes: Wishes,
        grammar: Grammar | None,
        *,
        system: str | None,
        notice: Callable[[str], object],
        watch: Callable[[Step], object] | None = None,
    ) -> None:
        self.wishes = wishes
        self.grammar = grammar
        self.turn = 0
        self._session = session
        self._notice = notice
        self._watch = watch
        self._system = system
        self._turns: list[Turn] = []
        self._pending: Pending | None = None

    @property
    def messages(self) -> list[Message]:
        """All that is kept: the system message if there is one, then questions and answers by turns."""
        return _to_messages(self._system, self._turns)

    def restore(self, messages: Sequence[Message], turn: int) -> None:
        """Go on from `messages`, as `messages` gave them, and from the position of the noise.

        Raises:
            UsageError: they are not questions and answers by turns, a system message before them; nothing changes.
        """
        has_system = bool(messages) and messages[0]["role"] == "system"
        rest = list(messages[has_system:])
        if [each["role"] for each in rest] != ["user", "assistant"] * (len(rest) // 2):
            raise UsageError("the messages are not a conversation: a question and its answer do not take turns")
        pairs = zip(rest[::2], rest[1::2], strict=True)
        self._system = messages[0]["content"] if has_system else None
        self._turns = [Turn(question["content"], answer["content"]) for question, answer in pairs]
        self._pending = None
        self.turn = turn

    def ask(self, text: str) -> Generation:
        """Begin an answer to one more message.

        Raises:
            UsageError: the message cannot fit the context even alone, or a wish cannot be met; nothing changes.
            ModelError: the template fails or refuses the messages, or no context can be made; likewise.
            KeyboardInterrupt: Ctrl-C before it begins; likewise.
        """
        return self._begin(self._turns, text)

    def again(self) -> Generation:
        """Begin another answer to the last question, with other noise. The last one stays until that is kept.

        Raises:
            UsageError: there is nothing to answer again; otherwise as for `ask`.
        """
        if not self._turns:
            raise UsageError("nothing has been asked yet", hint="there is no answer to make again")
        return self._begin(self._turns[:-1], self._turns[-1].question)

    def keep(self, generation: Generation, said: str | None = None) -> None:
        """Let what `generation` said so far, whole or interrupted, be the answer; without any text nothing is kept.

        `said` is kept in place of its text, if given.
        """
        pending = self._pending
        if pending is None or pending.generation is not generation:
            return
        self._pending = None
        if generation.text:
            said = generation.text if said is None else said
            self._turns = [*pending.turns, Turn(pending.question, said)]

    def undo(self) -> str | None:
        """Take back the last question with its answer; the question's text, None if there is none."""
        self._pending = None
        return self._turns.pop().question if self._turns else None

    def reset(self) -> None:
        """Forget all but the system text."""
        self._pending = None
        self._turns = []

    def set_system(self, text: str | None) -> None:
        """Let `text` be the system message from now on; None for none."""
        self._pending = None
        self._system = text

    def _begin(self, turns: Sequence[Turn], question: str) -> Generation:
        request = to_request(self.wishes, self._session, self.grammar, turn=self.turn)
        dropped, prompt = self._fitting(turns, question)
        generation = self._session.generate(prompt, request, self._watch)
        if dropped:
            went = "the oldest turn is" if dropped == 1 else f"the oldest {dropped} turns are"
            self._notice(f"the context is full: {went} forgotten")
        self.turn += 1
        self._pending = Pending(generation, question, tuple(turns[dropped:]))
        return generation

    def _fitting(self, turns: Sequence[Turn], question: str) -> tuple[int, list[int]]:
        """How many of `turns` have to go before the prompt that asks `question` leaves room to answer; that prompt.

        If any has to, some more go, up to a quarter of the context: every prompt that begins otherwise than the
        one before is read anew from there.
        """
        limit = self._session.context_limit
        most = limit - min(self.wishes.max_tokens or ROOM, limit // 4)
        whole = self._prompt(turns, question)
        if len(whole) <= most or not turns:
            return 0, whole
        counts = range(1, len(turns) + 1)
        for budget in (most - limit // 4, most):
            place = bisect_left(counts, -budget, key=lambda count: -len(self._prompt(turns[count:], question)))
            if place < len(turns) - 1:  # a turn is left
                break
        dropped = counts[min(place, len(turns) - 1)]
        return dropped, self._prompt(turns[dropped:], question)

    def _prompt(self, turns: Sequence[Turn], question: str) -> list[int]:
        messages = _to_messages(self._system, turns)
        return self._session.prompt_from_messages([*messages, {"role": "user", "content": question}])


def _to_messages(system: str | None, turns: Sequence[Turn]) -> list[Message]:
    messages: list[Message] = [] if system is None else [{"role": "system", "content": system}]
    for turn in turns:
        messages += [{"role": "user", "content": turn.question}, {"role": "assistant", "content": turn.answer}]
    return messages
