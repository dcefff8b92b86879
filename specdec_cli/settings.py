"""How a session loads its models, and whom it tells what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_BATCH: Final = 2048
"""Prompt tokens in a pass."""

SETTINGS_OF_SPEED: Final = (
    "threads",
    "draft_threads",
    "gpu_layers",
    "draft_gpu_layers",
    "flash_attn",
    "cache_type_k",
    "cache_type_v",
    "lora",
    "draft_lora",
)
"""Those that the costs of a pass depend on."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How the two models are loaded. None: what the pair says, else `DEFAULT_BATCH` and as many threads as usable CPUs.

    Layers all go to a GPU if there is one.
    """

    threads: int | None = None
    draft_threads: int | None = None
    batch_size: int | None = None
    ctx_size: int | None = None
    gpu_layers: int | None = None
    draft_gpu_layers: int | None = None
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
