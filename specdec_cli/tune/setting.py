"""What is raced: who drafts, how far, how it is verified, and on how many threads; and what a stage of a race tries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from specdec_cli.catalog import NgramFile, PredictedText, Source
from specdec_cli.core.costs import Costs
from specdec_cli.core.theory import speed_up
from specdec_cli.limits import DEFAULT_RULE, DraftTokens
from specdec_cli.pairs.entries import label
from specdec_cli.settings import DEFAULT_BATCH

Chain = tuple[Source, ...]

MOST_CHAINS: Final = 6
LONGEST_FIXED: Final = 16
"""Of the fixed lengths that are tried; auto goes as far."""
FIXED_TRIED: Final = 2
UNKNOWN_LENGTHS: Final = (2, 4)
"""Tried where nothing is known of how often a guess is right."""
BATCHES: Final = (DEFAULT_BATCH, 128)
"""llama.cpp computes 512 tokens at once at most, so that larger ones differ in nothing that takes time."""
TEMPERATURES: Final = ("auto", "same", "0.6")


@dataclass(frozen=True, slots=True)
class Setting:
    """All that a tuning chooses. `draft_temperature` is auto, same or a number."""

    chain: Chain
    threads: int
    draft_threads: int
    draft_tokens: DraftTokens = "auto"
    rule: str = DEFAULT_RULE
    draft_temperature: str = "auto"
    batch_size: int = DEFAULT_BATCH

    @property
    def plain(self) -> Setting:
        """The same without drafting."""
        return replace(self, draft_tokens=0)

    @property
    def has_model(self) -> bool:
        """Whether a draft model is among who drafts."""
        return any(isinstance(each, Path) for each in self.chain)

    @property
    def draws(self) -> bool:
        """Whether any of who drafts has a distribution that a temperature changes."""
        return any(isinstance(each, Path | NgramFile) for each in self.chain)


def chains(own: Chain) -> list[Chain]:
    """Who could draft: the pair's `own` drafters first, then fewer and others, the pair's tables and texts in front.

    A path with a comma in it stands alone: in a chain it could not be written down.
    """
    model: Chain = tuple(each for each in own if isinstance(each, Path))
    files: Chain = tuple(each for each in own if isinstance(each, PredictedText | NgramFile))
    bases: list[Chain] = [model, ("lookup",), ("lookup", *model)]
    found: list[Chain] = [own, *bases, *((*files, *base) for base in bases), ("lookup", *files, *model)]
    return list(dict.fromkeys(each for each in found if _is_writable(each)))[:MOST_CHAINS]


def thread_counts(usable: int) -> list[int]:
    """How many threads a model could have: all CPUs, half of them (one for each core with two), and three quarters."""
    counts = [usable, usable // 2, *([usable * 3 // 4] if usable >= 8 else [])]
    return [count for count in dict.fromkeys(counts) if count]


def draft_thread_counts(threads: int) -> list[int]:
    """Likewise for a draft beside a target of `threads`: as many, half, a quarter."""
    return [count for count in dict.fromkeys([threads, threads // 2, threads // 4]) if count]


def lengths(alpha: float | None, costs: Costs | None, source: str) -> list[DraftTokens]:
    """auto, and the fixed lengths that should be fastest where a guess is right with `alpha`."""
    fixed: Iterable[int] = UNKNOWN_LENGTHS
    if alpha is not None and costs is not None:
        tried = range(1, LONGEST_FIXED + 1)
        fixed = sorted(tried, key=lambda length: -speed_up(alpha, costs, source, length))[:FIXED_TRIED]
    return ["auto", *fixed]


def to_words(chain: Sequence[Source]) -> str:
    """A chain as -d takes it."""
    return ",".join(_word(each) for each in chain)


def whole(chain: Chain) -> Chain:
    """The same with whole paths: a models.toml counts others from its own folder."""
    return tuple(_whole(each) for each in chain)


def to_name(chain: Sequence[Source]) -> str:
    """A chain as tables show it: other files by their names, and the model, of which there is one, as what it is."""
    return ",".join("model" if isinstance(each, Path) else label(each) for each in chain)


def _is_writable(chain: Chain) -> bool:
    return len(chain) == 1 or 0 < len(chain) == 1 + to_words(chain).count(",")


def _whole(source: Source) -> Source:
    if isinstance(source, PredictedText | NgramFile):
        return replace(source, path=source.path.absolute())
    return source.absolute() if isinstance(source, Path) else source


def _word(source: Source) -> str:
    if isinstance(source, PredictedText):
        return f"text:{source.path}"
    return f"table:{source.path}" if isinstance(source, NgramFile) else str(source)
