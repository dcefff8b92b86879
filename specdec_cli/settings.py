"""How a session loads its models, and whom it tells what it does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final, Literal, Self

GpuLayers = int | Literal["auto"]

DEFAULT_BATCH: Final = 2048
"""Prompt tokens in a pass."""
SPLIT_MODES: Final = ("layer", "none", "row")
"""Layers on one device each, all on one, or each matrix in rows on several; the first is the default."""

SETTINGS_OF_SPEED: Final = (
    "threads",
    "draft_threads",
    "placing",
    "flash_attn",
    "cache_type_k",
    "cache_type_v",
    "lora",
    "draft_lora",
)
"""Those that the costs of a pass depend on."""


def are_shares(numbers: Sequence[float]) -> bool:
    """Whether devices can take layers in these shares."""
    return all(math.isfinite(each) and each >= 0 for each in numbers) and sum(numbers) > 0


@dataclass(frozen=True, slots=True)
class ModelPlacing:
    """Where a model is asked to go; None is not said.

    `device` are names, or workers for all of theirs; none at all is the CPU. `gpu_layers` is a number, -1 for all,
    or `auto` for as many as fit. `tensor_split` are shares of the devices; `main_gpu` is one of them, from 0, for the
    `split_mode` none.
    """

    device: tuple[str, ...] | None = None
    gpu_layers: GpuLayers | None = None
    tensor_split: tuple[float, ...] | None = None
    split_mode: str | None = None
    main_gpu: int | None = None

    def over(self, other: Self) -> Self:
        """This, and where it says nothing the `other`, whose shares belong to its own devices."""
        of_devices = ("tensor_split", "split_mode", "main_gpu")
        dropped = of_devices if self.device is not None else ()
        said = {
            each.name: getattr(other, each.name)
            for each in fields(self)
            if getattr(self, each.name) is None and each.name not in dropped
        }
        return replace(self, **said)


@dataclass(frozen=True, slots=True)
class Placing:
    """Where both models are asked to go. `rpc` are workers, each `HOST:PORT`; None is not said."""

    rpc: tuple[str, ...] | None = None
    target: ModelPlacing = field(default=ModelPlacing())
    draft: ModelPlacing = field(default=ModelPlacing())

    def over(self, other: Self) -> Self:
        """This, and where it says nothing the `other`, whose devices belong to its own workers."""
        if self.rpc is not None and self.rpc != (other.rpc or ()):
            return self
        return replace(self, rpc=other.rpc, target=self.target.over(other.target), draft=self.draft.over(other.draft))


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How the two models are loaded. None: what the pair says, else `DEFAULT_BATCH` and as many threads as usable CPUs.

    `specdec_cli.placing` says where they go.
    """

    threads: int | None = None
    draft_threads: int | None = None
    batch_size: int | None = None
    ctx_size: int | None = None
    placing: Placing = field(default=Placing())
    flash_attn: str = "auto"
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    recalibrate: bool = False
    lora: tuple[tuple[Path, float], ...] = ()
    draft_lora: tuple[tuple[Path, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Listener:
    """Who is told what takes a while (with the share that is done, 0..1, if that is known), and of what to notice."""

    progress: Callable[[str, float | None], None]
    notice: Callable[[str], None]
