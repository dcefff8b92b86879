"""What rounds, tokens and numbers of a trace are called on a terminal and in a pipe: words and signs, no layout."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from specdec_cli.terminal import ONE_LINE
from specdec_cli.traces.trace import Drafted, Header, Token

HIDDEN: Final = {"Cf", "Cs", "Co", "Zl", "Zp"}
"""Kinds of characters that show nothing, or turn the line around."""
USUAL: Final = {"typical_p": 1, "top_n_sigma": 0, "xtc_probability": 0, "dry_multiplier": 0, "logit_bias": {}} | {
    "repeat_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}
"""Values of sampling options that do nothing."""
SAID: Final = ("temperature", "top_k", "top_p", "min_p", *USUAL)
LONGEST: Final = 200
"""Characters of a token that can be of interest in a line."""
INFINITE: Final = "∞"


def quoted(token: Token) -> str:
    """A token as people read it, with its bytes where they are no text."""
    return quoted_text(token.data[:LONGEST].decode("utf-8", "backslashreplace"))


def quoted_text(text: str) -> str:
    """The beginning of a token's text, in quotes."""
    return f'"{plain(text[:LONGEST])}"'


def plain(text: str) -> str:
    """`text` on one line, without anything that a terminal would obey."""
    return "".join(map(_shown, text.translate(ONE_LINE)))


def _shown(character: str) -> str:
    if character.isascii() or unicodedata.category(character) not in HIDDEN:
        return character
    return f"\\u{ord(character):04x}"


def chance(value: float) -> str:
    """A probability in five characters."""
    return f"{value:.3f}" if value >= 0.0005 or value == 0 else f"{value:.0e}"


def ratio(value: float | None) -> str:
    """p/q in five characters."""
    if value is None:
        return INFINITE
    if 0 < value < 0.01 or value >= 1000:
        return f"{value:.0e}"
    return f"{value:.3f}" if value < 1 else f"{value:.3g}"


def milliseconds(seconds: float) -> str:
    """Three digits of what a round takes."""
    return f"{1000 * seconds:.3g}" if seconds < 1 else f"{1000 * seconds:.0f}"


def why(drafted: Drafted, rule: str) -> str:
    """What decided on a drafted token: the draw against the probability that it had to be below, or else."""
    if drafted.probability is not None:
        if drafted.draw is None:
            return "certain" if drafted.probability > 0 else "impossible"
        sign = "<" if drafted.draw < drafted.probability else "≥"
        return f"{chance(drafted.draw)} {sign} {chance(drafted.probability)}"
    if rule == "coupled":
        return {"accepted": "the same draw", "rejected": "another draw"}.get(drafted.decision, "")
    if drafted.decision == "accepted":
        return "with the next"
    return "impossible" if drafted.decision == "rejected" else ""


def about(header: Header) -> list[str]:
    """What was asked of which pair, in parts."""
    length = "plain decoding" if header.draft_tokens == 0 else f"draft-tokens {header.draft_tokens}"
    parts = [f"target {plain(header.target)}", f"draft {plain(header.draft or 'none')}"]
    parts += [f"{plain(header.rule)} rule", f"seed {header.seed}", length, f"{header.prompt_tokens} tokens of prompt"]
    return [*parts, *_options(header.sampling)]


def labelled(label: Mapping[str, Any]) -> str:
    """What tells an answer from others."""
    return plain(", ".join(f"{name} {value}" for name, value in label.items()))


def _options(sampling: Mapping[str, Any]) -> list[str]:
    """The sampling options that do something."""
    said = {name: sampling[name] for name in SAID if name in sampling and sampling[name] != USUAL.get(name)}
    return [plain(f"{name.replace('_', '-')} {value}") for name, value in said.items()]
