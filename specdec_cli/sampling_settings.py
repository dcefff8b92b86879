"""The sampling chain of an answer: what the user says, else what the model file brings, else llama.cpp's defaults."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.order import to_samplers
from specdec_cli.errors import UsageError
from specdec_cli.llama.sampling_defaults import read_sampling_defaults
from specdec_cli.llama.token_texts import TokenTexts

SEQUENCE_BREAKERS: Final = ("\n", ":", '"', "*")
"""llama.cpp's own."""
LOOKING_BACK: Final = ("repeat_last_n", "dry_penalty_last_n")


def read_brought(path: Path, role: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The options of the chain that a model file brings, and in words what of it is ignored.

    Raises:
        ModelError: the file does not parse.
    """
    values, ignored = read_sampling_defaults(path, role)
    brought: dict[str, Any] = dict(values)
    if "samplers" in values:
        brought["samplers"] = ()
        for name in re.split("[;,]", str(values["samplers"])):
            try:
                brought["samplers"] = to_samplers(";".join([*brought["samplers"], name]))
            except UsageError as error:
                ignored += (f"the {role}'s order of samplers holds one that is ignored: {error.message}",)
        if not brought["samplers"]:
            del brought["samplers"]
    return brought, ignored


def to_chain(given: Mapping[str, Any], brought: Mapping[str, Any], texts: TokenTexts, *, context: int) -> SamplingChain:
    """The chain of `given` over `brought`, both by the names of its fields, on a vocabulary and for `context` tokens.

    In `given`, `logit_bias` names tokens by texts, `dry_sequence_breaker` holds texts, and -1 tokens to look back on
    are all of them.

    Raises:
        UsageError: a value is outside its range, or a text is not one token.
    """
    options = {**brought, **given}
    for name in LOOKING_BACK:
        if options.get(name) == -1:
            options[name] = context
    bias = tuple((texts.token_of(token), value) for token, value in options.pop("logit_bias", ()))
    banned = tuple((token, -math.inf) for token in texts.suppressed)
    breakers = options.pop("dry_sequence_breaker", SEQUENCE_BREAKERS)
    if options.get("dry_multiplier"):
        options["dry_breakers"] = texts.breakers([text for text in breakers if text != "none"])
    return SamplingChain(**options, logit_bias=bias + banned)


def to_settings(chain: SamplingChain) -> dict[str, Any]:
    """The options of `chain` as JSON has them; a ban, whose bias no number of JSON can say, is null."""
    bias: defaultdict[str, float] = defaultdict(float)
    for token, value in chain.logit_bias:
        bias[str(token)] += value
    options: dict[str, Any] = {each.name: getattr(chain, each.name) for each in fields(chain) if each.init}
    del options["dry_breakers"]
    return options | {"logit_bias": {token: value if value > -math.inf else None for token, value in bias.items()}}
