"""What a program says of an answer and of loading, checked as the command line checks it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, TypedDict

from specdec_cli.core.sampling.order import to_samplers
from specdec_cli.core.sampling.ranges import RANGES
from specdec_cli.errors import UsageError
from specdec_cli.limits import LARGEST_BATCH, LONGEST_DRAFT, MOST_THREADS, RULES, DraftTokens
from specdec_cli.llama.context_options import CACHE_TYPES, FLASH_ATTENTION
from specdec_cli.placing_keys import PLACING_KEYS, faults, to_placing, to_plain
from specdec_cli.settings import GpuLayers, ModelSettings

LARGEST_CONTEXT: Final = 2**24
LARGEST_SEED: Final = 2**64 - 1
LARGEST_SCALE: Final = 100


class Sampling(TypedDict, total=False):
    """The options of the sampling chain by the names of the command line; what is left out is as there.

    `logit_bias` is by token, an id or a text, of digits too; -inf bans it.
    """

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    top_n_sigma: float
    xtc_probability: float
    xtc_threshold: float
    repeat_last_n: int
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_sequence_breaker: Sequence[str]
    logit_bias: Mapping[int | str, float]
    samplers: Sequence[str]


class Loading(TypedDict, total=False):
    """How the models are loaded, by the names of the command line; what is left out is as there.

    What places models on devices is as a models.toml has it, for target and draft apart. `lora` and `draft_lora` are
    files of adapters with their scales.
    """

    threads: int
    draft_threads: int
    batch_size: int
    ctx_size: int
    rpc: str | Sequence[str]
    device: str | Sequence[str]
    draft_device: str | Sequence[str]
    gpu_layers: GpuLayers
    draft_gpu_layers: GpuLayers
    tensor_split: Sequence[float]
    draft_tensor_split: Sequence[float]
    split_mode: str
    draft_split_mode: str
    main_gpu: int
    draft_main_gpu: int
    flash_attn: str
    cache_type_k: str
    cache_type_v: str
    recalibrate: bool
    lora: Sequence[tuple[str | Path, float]]
    draft_lora: Sequence[tuple[str | Path, float]]


COUNTS: Final = {
    "threads": (1, MOST_THREADS),
    "draft_threads": (1, MOST_THREADS),
    "batch_size": (1, LARGEST_BATCH),
    "ctx_size": (0, LARGEST_CONTEXT),
}
WORDS: Final = {"flash_attn": FLASH_ATTENTION, "cache_type_k": CACHE_TYPES, "cache_type_v": CACHE_TYPES}


def to_settings(given: Mapping[str, Any]) -> ModelSettings:
    """The settings of a session.

    Raises:
        UsageError: a name is not one of `Loading`, or a value is out of range.
    """
    _check_names(given, [each.name for each in fields(ModelSettings) if each.name != "placing"] + [*PLACING_KEYS])
    for name, (low, high) in COUNTS.items():
        _check_count(name, given.get(name), low, high)
    for name, words in WORDS.items():
        if given.get(name, "f16" if words is CACHE_TYPES else "auto") not in words:
            raise UsageError(f"{name} {given[name]} is not one of {', '.join(words)}")
    places = {name: to_plain(value) for name, value in given.items() if name in PLACING_KEYS}
    for name, complaint in faults(places):
        raise UsageError(f"{name} {given[name]} {complaint}")
    adapters = {name: _to_adapters(name, given[name]) for name in ("lora", "draft_lora") if name in given}
    others = {name: value for name, value in given.items() if name not in PLACING_KEYS}
    return ModelSettings(placing=to_placing(places), **{**others, **adapters})


def to_chain_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the chain as `specdec_cli.sampling_settings` reads them.

    Raises:
        UsageError: a name is not one of `Sampling`, or a sampler is unknown.
    """
    _check_names(given, list(Sampling.__annotations__))
    options = dict(given)
    if "samplers" in options:
        options["samplers"] = to_samplers(";".join(options["samplers"]))
    if "logit_bias" in options:
        options["logit_bias"] = tuple((_spelled(token), float(bias)) for token, bias in options["logit_bias"].items())
    return options


def _spelled(token: int | str) -> str:
    """A token as the command line has it: digits are an id, and a text if they are in quotes."""
    if isinstance(token, str):
        return f'"{token}"'
    if token < 0:
        raise UsageError(f"logit_bias names the token {token}", hint="the first token is 0")
    return str(token)


def _to_adapters(name: str, given: Any) -> tuple[tuple[Path, float], ...]:
    try:
        adapters = tuple((Path(path), float(scale)) for path, scale in given)
    except (TypeError, ValueError):
        raise UsageError(f"{name} is no list of files with scales", hint=f'{name}=[("adapter.gguf", 1.0)]') from None
    for path, scale in adapters:
        if not abs(scale) <= LARGEST_SCALE:
            raise UsageError(f"{name} {path} with scale {scale:g} is not in -{LARGEST_SCALE}..{LARGEST_SCALE}")
    return adapters


def to_request_options(
    seed: int | None,
    max_tokens: int | None,
    draft_tokens: DraftTokens | None,
    rule: str | None,
    draft_temperature: float | str | None,
    stop: Sequence[str],
) -> dict[str, Any]:
    """Fields of a `Request`. A seed that is not given is drawn.

    Raises:
        UsageError: a value is out of range.
    """
    _check_count("seed", seed, 0, LARGEST_SEED)
    _check_count("max_tokens", max_tokens, 1, LARGEST_CONTEXT)
    if draft_tokens != "auto":
        _check_count("draft_tokens", draft_tokens, 0, LONGEST_DRAFT)
    if rule is not None and rule not in RULES:
        raise UsageError(f"rule {rule} is not one of {', '.join(RULES)}")
    if isinstance(stop, str) or not all(stop):
        raise UsageError("stop is a list of texts, none of them empty", hint='stop=["\\n\\n"]')
    return {
        "seed": secrets.randbelow(2**32) if seed is None else seed,
        "max_tokens": max_tokens,
        "draft_tokens": draft_tokens,
        "rule": rule,
        "draft_temperature": None if draft_temperature is None else to_draft_temperature(draft_temperature),
        "stops": tuple(stop),
    }


def to_draft_temperature(given: float | str) -> str:
    """`auto`, `same` or a number as text.

    Raises:
        UsageError: it is something else.
    """
    low, high, _ = RANGES["temperature"]
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if given not in ("auto", "same") and not (is_number and low <= float(given) <= high):
        raise UsageError(f"draft_temperature {given} is neither auto nor same nor a number in {low}..{high}")
    return str(given)


def _check_names(given: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise UsageError(f"there is no option {name}", hint=f"known are {', '.join(known)}")


def _check_count(name: str, value: Any, low: int, high: int) -> None:
    if value is not None and not (type(value) is int and low <= value <= high):
        raise UsageError(f"{name} {value} is not a whole number in {low}..{high}")
