"""Prompts that ask for what is missing between two texts, by the tokens that a code model was trained with for it."""

from __future__ import annotations

from specdec_cli.errors import ModelError
from specdec_cli.llama.library import llama
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.llama.weights import Weights


def encode_infill(weights: Weights, tokenizer: Tokenizer, before: str, after: str) -> list[int]:
    """Tokens that ask for the text between `before` and `after`: prefix, suffix, then the middle that is to come.

    Control tokens in the texts are plain text. The model ends the middle by a token that every vocabulary counts as
    an end of generation.
    Source: Bavarian et al. 2022, "Efficient Training of Language Models to Fill in the Middle", the PSM order.

    Raises:
        ModelError: the vocabulary has no such tokens.
    """
    vocab, library = weights.vocab, llama()
    marks = (library.llama_vocab_fim_pre, library.llama_vocab_fim_suf, library.llama_vocab_fim_mid)
    prefix, suffix, middle = (int(mark(vocab)) for mark in marks)
    if min(prefix, suffix, middle) < 0:
        raise ModelError(
            f"target {weights.path} cannot fill in a middle: its vocabulary has no tokens for it",
            hint="--suffix needs a model that was trained for it, such as Qwen2.5-Coder",
        )
    texts = [tokenizer.encode_part(text, literally=True) for text in (before, after)]
    return tokenizer.begun([prefix, *texts[0], suffix, *texts[1], middle])
