"""Limits and choices that more than one room must agree on. Imports nothing, so that the command line can read them."""

from typing import Final, Literal

LONGEST_DRAFT: Final = 128
"""Tokens drafted a round at most: each costs a row of logits in the target's compute buffers."""

DraftTokens = int | Literal["auto"]
"""A draft length as users give it."""

RULES: Final = ("token", "block", "coupled")
"""The names of `core.verify.RULES`."""

DEFAULT_RULE: Final = "block"
"""Of `core.verify.RULES`: it keeps the most tokens at every temperature measured (`benchmarks/rules.py`)."""

MOST_THREADS: Final = 512
"""Of a model."""

LARGEST_BATCH: Final = 2**16
"""Prompt tokens in a pass."""

LARGEST_INT: Final = 2**31 - 1
"""What C takes for a count."""
MOST_SEQUENCES: Final = 256
"""Texts that llama.cpp allows in one context: LLAMA_MAX_SEQ."""
