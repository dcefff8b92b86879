"""What a pair of models.toml says of where its models go: workers, and devices for target and draft apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from specdec_cli.endpoints import to_endpoints
from specdec_cli.errors import UsageError
from specdec_cli.limits import LARGEST_INT
from specdec_cli.settings import SPLIT_MODES, ModelPlacing, ModelSettings, Placing, are_shares

NAMES: Final = tuple(each.name for each in fields(ModelPlacing))
OF_DRAFT: Final = "draft_"
PLACING_KEYS: Final = ("rpc", *NAMES, *(f"{OF_DRAFT}{name}" for name in NAMES))


def to_placing(entry: Mapping[str, Any]) -> Placing:
    """What `entry`, which was checked, says."""
    rpc = None
    if "rpc" in entry:
        rpc = tuple(endpoint for each in to_list(entry["rpc"]) for endpoint in to_endpoints(each, "rpc"))
    return Placing(rpc, _to_model_placing(entry, ""), _to_model_placing(entry, OF_DRAFT))


def to_placing_keys(placing: Placing) -> dict[str, Any]:
    """The keys that say `placing`, without what it does not say."""
    said: dict[str, Any] = {} if placing.rpc is None else {"rpc": list(placing.rpc)}
    for prefix, model in (("", placing.target), (OF_DRAFT, placing.draft)):
        values = {f"{prefix}{name}": getattr(model, name) for name in NAMES}
        said |= {key: to_plain(value) for key, value in values.items() if value is not None}
    return said


def to_flat(settings: ModelSettings) -> dict[str, Any]:
    """All settings by the names of the command line, for JSON; null for what is not said."""
    flat = asdict(settings)
    del flat["placing"]
    return flat | dict.fromkeys(PLACING_KEYS) | to_placing_keys(settings.placing)


def faults(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys of `entry` that say what they must not, each with a complaint."""
    if "rpc" in entry and (complaint := _fault_of_workers(entry["rpc"])):
        yield "rpc", complaint
    for key in PLACING_KEYS[1:]:
        valid, must = _RULES[key.removeprefix(OF_DRAFT)]
        if key in entry and not valid(entry[key]):
            yield key, must


def to_list(value: Any) -> list[Any]:
    """A list as it is; one text in a list of its own."""
    return value if isinstance(value, list) else [value]


def to_plain(value: Any) -> Any:
    """A sequence as a models.toml has it, all else as it is."""
    return list(value) if isinstance(value, tuple) else value


def _to_model_placing(entry: Mapping[str, Any], prefix: str) -> ModelPlacing:
    said = {name: entry[f"{prefix}{name}"] for name in NAMES if f"{prefix}{name}" in entry}
    for name in {"device", "tensor_split"} & set(said):
        said[name] = tuple(to_list(said[name]))
    return ModelPlacing(**said)


def _fault_of_workers(value: Any) -> str:
    texts = to_list(value)
    if not texts or not all(isinstance(each, str) for each in texts):
        return 'must be "HOST:PORT", or a list of them'
    try:
        to_endpoints(",".join(texts), "rpc")
    except UsageError as error:
        return f"is wrong: {error.message}"
    return ""


def _is_whole(value: Any, low: int) -> bool:
    return type(value) is int and low <= value <= LARGEST_INT


def _are_names(value: Any) -> bool:
    return bool(value) and all(isinstance(each, str) and each for each in to_list(value))


def _are_shares(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) in (int, float) for each in value) and are_shares(value)


_RULES: Final = {
    "device": (_are_names, "must be a device, or a list of them"),
    "gpu_layers": (lambda value: value == "auto" or _is_whole(value, -1), 'must be "auto" or a whole number from -1'),
    "tensor_split": (_are_shares, "must be a list of shares, numbers from 0 that are not all 0"),
    "split_mode": (lambda value: value in SPLIT_MODES, f"must be one of {', '.join(SPLIT_MODES)}"),
    "main_gpu": (lambda value: _is_whole(value, 0), "must be the number of a device, from 0"),
}
"""For each key whether a value is valid, and what it must be."""
