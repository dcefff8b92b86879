"""What is asked of which pair: the user's words and wishes, and how they become tokens and a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_cli.catalog import Pair
from specdec_cli.generation import Grammar, Request
from specdec_cli.limits import DraftTokens
from specdec_cli.llama.chat_template import Message
from specdec_cli.llama.gbnf import check_grammar
from specdec_cli.llama.grammar import read_grammar as read_gbnf
from specdec_cli.llama.json_schema import json_schema_to_grammar
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user says of an answer. `chain` holds only what is said, see `specdec_cli.sampling_settings`.

    `draft_temperature` is auto, same or a number, None like `rule` for the pair's; `grammar` is a GBNF file,
    `json_schema` a file or the schema.
    """

    chain: Mapping[str, Any]
    rule: str | None
    seed: int
    draft_tokens: DraftTokens | None
    draft_temperature: str | None
    max_tokens: int | None
    stops: tuple[str, ...]
    grammar: Path | None
    json_schema: str | None
    logprobs: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of which pair, and how. With a `suffix` the answer is what belongs between `text` and it."""

    pair: Pair
    settings: ModelSettings
    wishes: Wishes
    text: str
    system: str | None
    raw: bool
    memory: Path | None = None
    remembers_prompt: bool = False
    suffix: str | None = None


def read_grammar(wishes: Wishes, notice: Callable[[str], object]) -> Grammar | None:
    """The grammar of the answer, read before anything loads; `notice` hears what of a schema it leaves out.

    Raises:
        UsageError: a file cannot be read, a schema cannot be converted, or a grammar cannot be used.
    """
    if wishes.grammar is not None:
        grammar = Grammar(read_gbnf(wishes.grammar), f"grammar {wishes.grammar}")
        check_grammar(grammar.text, grammar.name)
        return grammar
    if wishes.json_schema is not None:
        text, ignored = json_schema_to_grammar(wishes.json_schema)
        if ignored:
            notice(f"the answer will follow the schema but for its {', '.join(ignored)}")
        return Grammar(text, "the grammar of --json-schema")
    return None


def to_request(wishes: Wishes, session: Session, grammar: Grammar | None, *, turn: int = 0) -> Request:
    """What a loaded session can answer; `turn` is how many answers of the same seed came before.

    Raises:
        UsageError: an option of the chain does not fit the model, such as the text of a token.
    """
    return Request(
        chain=session.chain(wishes.chain),
        seed=wishes.seed,
        draft_tokens=wishes.draft_tokens,
        max_tokens=wishes.max_tokens,
        stops=wishes.stops,
        rule=wishes.rule,
        draft_temperature=wishes.draft_temperature,
        grammar=grammar,
        logprobs=wishes.logprobs,
        turn=turn,
    )


def to_tokens(question: Question, session: Session) -> list[int]:
    """The prompt: raw text, messages by the target's template, or what lies before and behind the answer."""
    if question.suffix is not None:
        return session.prompt_to_fill(question.text, question.suffix)
    if question.raw:
        return session.prompt_from_text(question.text)
    messages: list[Message] = [{"role": "user", "content": question.text}]
    if question.system is not None:
        messages.insert(0, {"role": "system", "content": question.system})
    return session.prompt_from_messages(messages)
