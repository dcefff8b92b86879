"""Messages to a prompt, by the chat template that the model file carries, in a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from specdec_cli.errors import ModelError
from specdec_cli.llama.library import llama
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.llama.weights import Weights


class Message(TypedDict):
    """One turn of a conversation; `role` is system, user or assistant."""

    role: str
    content: str


def render_messages(weights: Weights, tokenizer: Tokenizer, messages: Sequence[Message]) -> str:
    """The prompt that asks the model for the next message.

    The bindings' formatter renders in jinja2's immutable sandbox, with what Transformers offers templates.

    Raises:
        ModelError: the file has no template, or the template fails or refuses these messages.
    """
    template = llama().llama_model_chat_template(weights.model, None)
    if template is None:
        raise ModelError(f"target {weights.path} has no chat template", hint="use --raw to continue plain text")
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    try:
        formatter: Any = Jinja2ChatFormatter(
            template.decode("utf-8"),
            eos_token=tokenizer.special_text(tokenizer.eos),
            bos_token=tokenizer.special_text(tokenizer.bos),
        )
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
