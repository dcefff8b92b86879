"""Whether a pair can work together on this machine, by the metadata of its files alone.

No weight is read and nothing is loaded: it says in words what a session would find out, minutes earlier.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from specdec_cli import context_size
from specdec_cli.catalog import NgramFile, Pair, PredictedText, parts_of
from specdec_cli.core.draft_length import LONGEST
from specdec_cli.errors import ModelError, UsageError
from specdec_cli.files import read_file
from specdec_cli.llama.description import Description, cache_bytes, read_description, state_bytes
from specdec_cli.llama.machine import memory
from specdec_cli.ngram_file import read_ngrams
from specdec_cli.vocabulary import Vocabulary, find_overlap, first_difference


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What a session would be asked for: `size` tokens of context (None: 4096, 0: all trained), and types of caches.

    `lent` are the bytes that workers of the pair have free, None if nobody asked them.
    """

    size: int | None = None
    keys: str = "f16"
    values: str = "f16"
    lent: int | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """A model of a pair, and what it needs: tokens of context, and bytes for weights, caches and kept states."""

    description: Description
    context: int
    cache: int
    states: int

    @property
    def memory(self) -> int:
        """All bytes but those of the computation itself, some hundred megabytes."""
        return self.description.weights + self.cache + self.states


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two vocabularies relate. `difference` is empty if they are one, `shared` the share of the target's."""

    difference: str
    shared: float


@dataclass(frozen=True, slots=True)
class Report:
    """All that a check found. `obstacle` is empty if the pair can run; `way_out` is what to do in either case."""

    pair: Pair
    target: Need
    draft: Need | None
    agreement: Agreement | None
    machine: int | None
    obstacle: str
    way_out: str
    remarks: tuple[str, ...]

    @property
    def memory(self) -> int:
        """Bytes that the pair needs."""
        return self.target.memory + (self.draft.memory if self.draft else 0)


def check_pair(pair: Pair, options: CheckOptions) -> Report:
    """What is to be known of `pair` before it is loaded.

    Raises:
        ModelError: a file cannot be opened, is not a model, or is cut short.
    """
    with _without_collecting():
        target = _need(pair, pair.target, "target", options)
        draft = None if pair.draft_model is None else _need(pair, pair.draft_model, "draft", options)
        agreement, obstacle, way_out = _agree(target, draft)
    if useless := _useless_files(pair, target.description.vocabulary):
        obstacle, way_out = useless[0], "check the path, or take another -d"
    machine, needed = memory(), target.memory + (draft.memory if draft else 0)
    lent = options.lent if pair.placing.rpc else 0
    if not obstacle and machine is not None and lent is not None and needed > machine + lent:
        caches = target.cache + (draft.cache if draft else 0)
        more = f", its workers {gigabytes(lent)} free" if lent else ""
        obstacle = f"it needs {gigabytes(needed)} of memory and this machine has {gigabytes(machine)}{more}"
        way_out = (
            f"caches are {gigabytes(caches)} of it: a smaller --ctx-size or --cache-type-k q8_0; else smaller files"
        )
    remarks = tuple(_remarks(pair, target, draft, lent))
    return Report(pair, target, draft, agreement, machine, obstacle, way_out, remarks)


def gigabytes(count: int) -> str:
    """`count` bytes as people read them; megabytes where there is less than one gigabyte."""
    return f"{count / 1e9:.1f} GB" if count >= 999.5e6 else f"{count / 1e6:.0f} MB"


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Hundreds of thousands of tokens come and stay: looking for garbage among them would take half of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _need(pair: Pair, path: Path, role: str, options: CheckOptions) -> Need:
    description = read_description(path, role, parts_of(path)[1:])
    trained = description.shape.trained_context
    size = min(context_size.DEFAULT, trained) if options.size is None else options.size or trained
    if role == "draft":
        size = min(size, trained)
    drafted = pair.draft_tokens if isinstance(pair.draft_tokens, int) else LONGEST
    return Need(
        description,
        size,
        cache_bytes(description.shape, size, keys=options.keys, values=options.values),
        state_bytes(description.shape, 1 + (drafted if pair.drafters else 0)),
    )


def _useless_files(pair: Pair, vocabulary: Vocabulary) -> list[str]:
    """Why files that drafters read are of no use, if they are not."""
    reasons = []
    for source in pair.drafters:
        try:
            if isinstance(source, PredictedText) and not _read_text(source.path):
                reasons.append(f"text {source.path} is empty")
            if isinstance(source, NgramFile) and read_ngrams(source.path)[1] != vocabulary.fingerprint:
                reasons.append(f"table {source.path} is about another vocabulary than the target's")
        except UsageError as error:
            reasons.append(error.message)
    return reasons


def _read_text(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        raise UsageError(f"text {path} cannot be read: {error.strerror}") from None


def _agree(target: Need, draft: Need | None) -> tuple[Agreement | None, str, str]:
    """How the vocabularies relate; what stands in the way, if anything; and the way out."""
    if draft is None:
        return None, "", ""
    ours, theirs = target.description.vocabulary, draft.description.vocabulary
    difference = first_difference(ours, theirs)
    if not difference:
        return Agreement("", min(1.0, len(theirs.tokens) / len(ours.tokens))), "", ""
    try:
        shared = find_overlap(ours, theirs).of_target
    except ModelError as error:
        return Agreement(difference, 0.0), error.message, error.hint
    return Agreement(difference, shared), "", "a draft of the target's family would have more of its guesses kept"


def _remarks(pair: Pair, target: Need, draft: Need | None, lent: int | None) -> list[str]:
    """What else a user should know."""
    remarks = []
    if not target.description.has_template:
        remarks.append("the target has no chat template: specdec generate needs --raw")
    if target.context > target.description.shape.trained_context:
        remarks.append(f"the target was trained for {target.description.shape.trained_context:,} tokens")
    if draft is not None and draft.context < target.context:
        remarks.append(f"the draft knows {draft.context:,} tokens of context: behind these nothing is drafted")
    if draft is not None and draft.description.weights >= target.description.weights:
        remarks.append("the draft is no smaller than the target: it will not be faster than plain decoding (-d none)")
    if pair.placing.rpc and lent is None:
        remarks.append(f"layers go to {', '.join(pair.placing.rpc)}: specdec doctor says whether there is room")
    return remarks
