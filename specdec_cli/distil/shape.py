"""The shape of a draft: a small transformer of llama.cpp's `llama` kind, whose head is its table of embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEAD_WIDTH: Final = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """`width` of the hidden states, a multiple of `HEAD_WIDTH`, and how many `layers`.

    `rope_base` is that of the rotary positions, `norm_epsilon` what RMS norms add to a mean square.
    """

    width: int
    layers: int
    rope_base: float = 10000.0
    norm_epsilon: float = 1e-5

    @property
    def heads(self) -> int:
        """Attention heads, each with keys and values of its own."""
        return self.width // HEAD_WIDTH

    @property
    def feed_forward(self) -> int:
        """Width of the middle of a SwiGLU feed-forward."""
        return 3 * self.width
