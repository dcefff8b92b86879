"""What a bench asks: prompts of a few kinds that come with the package, or a file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from specdec_cli.errors import UsageError
from specdec_cli.files import read_file
from specdec_cli.llama.chat_template import Message

KEYS: Final = ("name", "prompt", "messages", "max_tokens")
ROLES: Final = ("system", "user", "assistant")
ALL: Final = "all"
"""What the table calls all kinds together, so that no kind can have that name."""
HINT: Final = 'a line is like {"name": "code", "prompt": "Write a sort function."}'
BUILT_IN: Final = "the prompts that come with specdec"


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """A `prompt` of a `kind`: plain text, or the messages before the answer. `place` is where it was read, in words.

    `max_tokens` None is what the bench says.
    """

    kind: str
    place: str
    prompt: str | tuple[Message, ...]
    max_tokens: int | None = None


def built_in() -> tuple[BenchPrompt, ...]:
    """The prompts of the package: three each of code, prose, questions, edits and JSON."""
    text = (files("specdec_cli.bench") / "prompts.jsonl").read_text("utf-8")
    return _parse(text, BUILT_IN, "")


def read_prompts(path: Path) -> tuple[BenchPrompt, ...]:
    """The prompts of a file of JSON lines; those without a name are of one kind, named like the file.

    Raises:
        UsageError: it cannot be read, holds none, or a line is wrong; with its number.
    """
    try:
        text = read_file(path).decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"prompt file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        raise UsageError(f"prompt file {path}, line {line}: it is not UTF-8", hint=HINT) from None
    prompts = _parse(text, f"prompt file {path}", path.stem or "prompts")
    if not prompts:
        raise UsageError(f"prompt file {path} holds no prompt", hint=HINT)
    return prompts


def by_turn(prompts: Sequence[BenchPrompt], repeat: int) -> list[list[BenchPrompt]]:
    """Turns in which each kind is asked one of its prompts at most, until each was asked `repeat` times."""
    kinds: dict[str, list[BenchPrompt]] = {}
    for each in prompts:
        kinds.setdefault(each.kind, []).append(each)
    rows = [group * repeat for group in kinds.values()]
    return [[row[turn] for row in rows if turn < len(row)] for turn in range(max(map(len, rows), default=0))]


def _parse(text: str, source: str, kind: str) -> tuple[BenchPrompt, ...]:
    prompts = []
    for number, line in enumerate(text.split("\n"), 1):  # JSON may hold what other line ends look like
        if line.strip():
            prompts.append(_to_prompt(line, f"{source}, line {number}", kind))
    return tuple(prompts)


def _to_prompt(line: str, place: str, kind: str) -> BenchPrompt:
    def check(holds: bool, complaint: str) -> None:
        if not holds:
            raise UsageError(f"{place}: {complaint}", hint=HINT)

    try:
        given: Any = json.loads(line)
    except (ValueError, RecursionError):
        given = line
        check(False, "it is not JSON")
    check(isinstance(given, dict), "it is not an object")
    for key in given:
        check(key in KEYS, f'there is no key "{key:.40}", only {", ".join(KEYS)}')
    check(("prompt" in given) != ("messages" in given), "it needs either prompt or messages")
    name = given.get("name", kind)
    check(_is_text(name), "name must be some text")
    check(name != ALL, f'name "{ALL}" is what all of them together are called')
    most = given.get("max_tokens")
    check(most is None or (type(most) is int and most > 0), "max_tokens must be a whole number above 0")
    if "messages" in given:
        return BenchPrompt(name, place, _to_messages(given["messages"], check), most)
    check(_is_text(given["prompt"]), "prompt must be some text")
    return BenchPrompt(name, place, given["prompt"], most)


def _to_messages(given: Any, check: Any) -> tuple[Message, ...]:
    check(isinstance(given, list) and bool(given), "messages must be a list of one message at least")
    for each in given:
        check(isinstance(each, Mapping) and set(each) == {"role", "content"}, "a message needs role and content alone")
        check(each["role"] in ROLES, f"the role of a message must be one of {', '.join(ROLES)}")
        check(_is_text(each["content"]), "the content of a message must be some text")
    return tuple(Message(role=each["role"], content=each["content"]) for each in given)


def _is_text(given: Any) -> bool:
    """Whether it is text with something to read, and no half of a character that JSON can spell."""
    return isinstance(given, str) and bool(given.strip()) and not any("\ud800" <= each <= "\udfff" for each in given)
