"""One chat: asks, shows and counts answers, and keeps what was said. Where its lines come from is not its business."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from specdec_cli import memory
from specdec_cli.answer_json import to_json
from specdec_cli.chat import saved
from specdec_cli.chat.choices import Choice, Wished, restore, to_settings
from specdec_cli.chat.reading import SilentKeys, is_by_hand
from specdec_cli.chat.saved import Saved
from specdec_cli.chat.thinking import Tags, ThoughtStream
from specdec_cli.chat.view import AnswerView, ViewOptions
from specdec_cli.conversation import Conversation
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.errors import EXIT_OK, ModelError, SpecdecError, UsageError
from specdec_cli.generation import Generation
from specdec_cli.prompt import read_material
from specdec_cli.question import read_grammar
from specdec_cli.render import to_short_summary
from specdec_cli.session import Session
from specdec_cli.status import StatusLine
from specdec_cli.telling import before_last_words, stream
from specdec_cli.terminal import Terminal
from specdec_cli.tracing import Tracer


class Chat:
    """A conversation on a terminal. `draft` is text that belongs into the line that is typed next.

    `wished` and `view` hold for the next answer. `totals` and `times` are those of all answers, `last` is the latest.
    `tags` stand around thoughts, `inside` is one that the prompt opens, and thoughts are not kept where the model
    `forgets_thoughts`: tags that are control tokens mean nothing as text of a message.
    `kept_in` is the file that follows along. `code` is the exit code of the latest complaint. `draft_tokens` is the
    length that drafting had before it was switched off.
    """

    def __init__(
        self,
        session: Session,
        conversation: Conversation,
        terminal: Terminal,
        status: StatusLine,
        *,
        choices: Sequence[Choice],
        wished: Wished,
        view: ViewOptions,
        keys: SilentKeys,
        memory_file: Path | None,
        remembers_questions: bool,
        tracer: Tracer,
    ) -> None:
        self.session = session
        self.conversation = conversation
        self.terminal = terminal
        self.choices = choices
        self.wished = wished
        self.view = view
        self.keys = keys
        self.by_hand = is_by_hand(terminal)
        self.draft = ""
        self.revising = False
        self.last: Generation | None = None
        self.answers, self.totals, self.times = 0, Counters(), Timing()
        self.tags: Sequence[Tags] = ()
        self.inside: Tags | None = None
        self.forgets_thoughts = False
        self.kept_in: Path | None = None
        self.code = EXIT_OK
        self.draft_tokens: Any = None
        self._kept = b""
        self._status = status
        self._memory_file = memory_file
        self._remembers_questions = remembers_questions
        self._tracer = tracer
        self._material: list[str] = []

    def add_material(self, path: Path) -> None:
        """Let the text of a file go before the next message.

        Raises:
            UsageError: it cannot be read, or holds nothing.
        """
        text = read_material(path, self.terminal)
        if not text.strip():
            raise UsageError(f"{path} holds no text")
        self._material.append(text)
        lines = text.count("\n") + 1
        advice = "; Enter alone sends it as it is" if self.by_hand else ""
        self.terminal.notice(f"{path} ({lines} line{'' if lines == 1 else 's'}) goes before your next message{advice}")

    def drop_material(self) -> None:
        """Forget the files that wait."""
        self._material = []

    def give_up(self) -> None:
        """Ctrl-C where nothing is typed: forget what waits for the next message, or say how to leave."""
        waiting = self._material or self.revising
        self.draft, self.revising = "", False
        self.drop_material()
        self.terminal.notice("nothing waits for the next message any more" if waiting else "Ctrl-D or /exit ends")

    def say(self, text: str) -> None:
        """Ask `text`, after the files that wait. If nothing comes of it, both are still there.

        Raises:
            SpecdecError: it cannot be asked or answered.
            KeyboardInterrupt: Ctrl-C before the answer began.
        """
        message = "\n\n".join(part for part in (*self._material, text) if part.strip())
        if not message:
            self.revising = False
            return
        self.draft = text
        if self.revise(message) if self.revising else self._answer(lambda: self.conversation.ask(message)):
            self.draft, self._material, self.revising = "", [], False

    def answer_again(self) -> None:
        """Give the last question another answer; raises as `say` does."""
        self._answer(self.conversation.again)

    def revise(self, text: str) -> bool:
        """Put `text` and its answer in the place of the last question; whether it was answered. Raises as `say`."""
        before, answered = self.conversation.messages, False
        self.conversation.undo()
        try:
            answered = self._answer(lambda: self.conversation.ask(text))
        finally:
            if not answered:
                self.conversation.restore(before, self.conversation.turn)
        return answered

    def wish(self, wished: Wished) -> None:
        """Let `wished` hold from now on.

        Raises:
            UsageError: options contradict each other, or do not fit the model; nothing changes.
        """
        wished = wished.seeded()
        wishes = wished.to_wishes(self.conversation.wishes.logprobs)
        self.session.chain(wishes.chain)
        self.conversation.grammar = read_grammar(wishes, self.terminal.notice)
        self.conversation.wishes = wishes
        self.wished = wished

    def take(self, kept: Saved, path: Path, wished: Wished, *, given: Collection[str] = ()) -> None:
        """Go on with the chat `kept` that is in `path`: its settings hold over those of `wished` that are not `given`.

        Raises:
            UsageError: a setting cannot be used; nothing changes.
        """
        settings = {name: value for name, value in kept.settings.items() if name not in given}
        try:
            self.wish(restore(self.choices, settings, wished))
        except UsageError as error:
            raise UsageError(f"session {path}: {error.message}", hint=error.hint) from error
        self.conversation.restore(kept.messages, kept.turn)
        self.last = None
        target = self.session.pair.target.name
        if kept.target != target:
            self.terminal.notice(f"session {path} was with {kept.target}, and this is {target}")

    def to_saved(self) -> Saved:
        """All that this chat needs to go on some other time."""
        settings = to_settings(self.choices, self.wished)
        return Saved(self.conversation.messages, settings, self.conversation.turn, self.session.pair.target.name)

    def complain(self, error: SpecdecError) -> None:
        """Say what went wrong; the chat goes on."""
        self._status.close()
        self.terminal.error(error.message, error.hint)
        self.code = error.exit_code

    def keep_in(self, path: Path) -> None:
        """Let the file `path`, which says what this chat is now or does not exist, follow along from here on."""
        self.kept_in, self._kept = path, saved.to_bytes(self.to_saved())

    def keep(self) -> None:
        """Bring the file that follows along up to date, if there is one.

        Raises:
            UsageError: it cannot be written, or is something else by now.
        """
        if self.kept_in is not None and (content := saved.to_bytes(self.to_saved())) != self._kept:
            saved.save(self.kept_in, self.to_saved())
            self._kept = content

    def _answer(self, begin: Callable[[], Generation]) -> bool:
        """Show the answer that `begin` begins, and count and keep it; whether it said anything."""
        generation = begin()
        view = AnswerView(self._status, ThoughtStream(self.tags, inside=self.inside), self.view)
        self._tracer.begin(generation, self.session)
        try:
            with before_last_words(lambda: self._break_off(generation, view)):
                stream(generation, self._status, view.write)
        except ModelError as error:
            if not generation.text:
                raise
            self.complain(error)
        finally:
            self._finish(generation, view)
        self._tracer.end(generation)
        self._count(generation)
        self._tell(generation, view)
        self._remember(generation)
        if generation.finish_reason == "interrupted" and not self.by_hand:
            raise KeyboardInterrupt
        return bool(generation.text)

    def _finish(self, generation: Generation, view: AnswerView) -> None:
        """Show all that was said, and let it be the answer."""
        view.finish()
        self._status.close()
        self.conversation.keep(generation, view.said if self.forgets_thoughts else None)

    def _break_off(self, generation: Generation, view: AnswerView) -> None:
        """The chat ends here: what was said so far counts, as after Ctrl-C."""
        view.write(generation.break_off())
        self._finish(generation, view)
        self._tracer.end(generation)
        self._tell(generation, view)
        if generation.text:
            self.keep()

    def _count(self, generation: Generation) -> None:
        self.last = generation
        self.answers += 1
        self.totals.include(generation.counters)
        self.times.include(generation.timing)

    def _tell(self, generation: Generation, view: AnswerView) -> None:
        """What there is to say about an answer once it is there."""
        if not self.view.text:
            messages = self.conversation.messages
            system = messages[0]["content"] if messages and messages[0]["role"] == "system" else None
            wishes = self.conversation.wishes
            line = to_json(view.shown, generation, self.session, wishes, system=system, raw=False)
            self.terminal.write_text(line)
        elif not self.terminal.shows_text and view.shown and not view.shown.endswith("\n"):
            self.terminal.write_text("\n")
        if view.lost_in_thought and not self.view.thoughts:
            self.terminal.notice("the answer ended inside a thought, which --no-think hides")
        if self.view.stats:
            summary = to_short_summary(generation.counters, generation.timing, reason=generation.finish_reason)
            self.terminal.show_styled([(summary, "dim")])

    def _remember(self, generation: Generation) -> None:
        if self._memory_file is None:
            return
        asked: list[int] = []
        if self._remembers_questions and (messages := self.conversation.messages):
            asked = self.session.tokenizer.encode_part(messages[-2]["content"], literally=True)
        try:
            memory.remember(self._memory_file, self.session.fingerprint, [*asked, *generation.tokens])
            self.session.remembered = memory.load(self._memory_file, self.session.fingerprint)
        except UsageError as error:
            self.complain(error)
