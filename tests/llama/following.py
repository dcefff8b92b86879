"""Whole answers against a grammar, byte by byte, on the tokens of a toy."""

from __future__ import annotations

import numpy as np

from specdec_cli.core.past import Mask
from specdec_cli.llama.grammar import load_grammar
from specdec_cli.llama.weights import Weights
from tests.toy_gguf import EOS


def mask_of(weights: Weights, text: str) -> Mask:
    """Where an answer to the grammar `text` begins."""
    return load_grammar(weights, text, name="grammar")


def allows(mask: Mask, *tokens: int) -> list[bool]:
    return [bool(answer) for answer in mask.allowed(np.array(tokens, np.intp))]


def follows(mask: Mask, text: str) -> bool:
    """Whether `text` is a whole answer."""
    for byte in text.encode():
        if allows(mask, byte) != [True]:
            return False
        mask = mask.after(byte)
    return allows(mask, EOS) == [True]
