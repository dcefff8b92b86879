"""Messages to a prompt, by the chat template that the model file carries, in a sandbox.

Only the template writes control tokens. Where a message spells one out, say by quoting a prompt, an unused
character stands for it until the template is done, and what is around it is then read literally.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, TypedDict

from specdec_cli.errors import ModelError
from specdec_cli.llama.library import llama
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.llama.weights import Weights

STAND_INS: Final = range(0xE000, 0xF900)
"""Characters for private use: no template trims or changes them."""


class Message(TypedDict):
    """One turn of a conversation; `role` is system, user or assistant."""

    role: str
    content: str


def encode_messages(weights: Weights, tokenizer: Tokenizer, messages: Sequence[Message]) -> list[int]:
    """Tokens of the prompt that asks the model for the next message.

    Raises:
        ModelError: as for `render_messages`.
    """
    prompt = render_messages(weights, tokenizer, messages)
    contents = [message["content"] for message in messages]
    spelled = set[str]().union(*map(tokenizer.control_texts, contents))
    if not spelled:
        return tokenizer.encode(prompt)
    unused = (chr(code) for code in STAND_INS if all(chr(code) not in text for text in (prompt, *contents)))
    stand_ins = dict(zip(sorted(spelled, key=len, reverse=True), unused, strict=False))
    hidden = render_messages(weights, tokenizer, [_replaced(message, stand_ins) for message in messages])
    return tokenizer.begun(list(_tokens(hidden, stand_ins, tokenizer)))


def _replaced(message: Message, stand_ins: Mapping[str, str]) -> Message:
    content = message["content"]
    for text, stand_in in stand_ins.items():
        content = content.replace(text, stand_in)
    return {"role": message["role"], "content": content}


def _tokens(prompt: str, stand_ins: Mapping[str, str], tokenizer: Tokenizer) -> Iterator[int]:
    """Tokens of `prompt`: literally between two control tokens where anything there is stood in for."""
    texts = {ord(stand_in): text for text, stand_in in stand_ins.items()}
    controls = sorted(tokenizer.control_texts(prompt), key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, controls))})", prompt) if controls else [prompt]
    for literally, group in groupby(parts, lambda part: part.translate(texts) != part):
        yield from tokenizer.encode_part("".join(group).translate(texts), literally=literally)


def template_of(weights: Weights) -> str:
    """The template itself, empty if the file has none."""
    template: bytes | None = llama().llama_model_chat_template(weights.model, None)
    return "" if template is None else template.decode("utf-8", "replace")


def render_messages(weights: Weights, tokenizer: Tokenizer, messages: Sequence[Message]) -> str:
    """The prompt that asks the model for the next message.

    The bindings' formatter renders in jinja2's immutable sandbox, with what Transformers offers templates.

    Raises:
        ModelError: the file has no template, or the template fails or refuses these messages.
    """
    template = template_of(weights)
    if not template:
        raise ModelError(f"target {weights.path} has no chat template", hint="use --raw to continue plain text")
    try:
        formatter = _formatter(template, tokenizer.special_text(tokenizer.eos), tokenizer.special_text(tokenizer.bos))
        prompt = str(formatter(messages=list(messages)).prompt)
    except Exception as error:  # templates are programs from strangers: they may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(
            f"the chat template of target {weights.path} fails: {reason}", hint="use --raw to continue plain text"
        ) from error
    if not prompt.strip():
        raise ModelError(
            f"the chat template of target {weights.path} makes an empty prompt",
            hint="use --raw to continue plain text",
        )
    return prompt


@lru_cache(maxsize=1)
def _formatter(template: str, end: str, beginning: str) -> Any:
    """Compiled once: that takes 10 ms and more, and a conversation renders its messages again and again."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    return Jinja2ChatFormatter(template, eos_token=end, bos_token=beginning)
