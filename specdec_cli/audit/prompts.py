"""What an audit lets a pair continue: short texts of several kinds, some of which repeat themselves for lookup."""

from __future__ import annotations

from typing import Final

PROMPTS: Final = (
    "The lighthouse keeper wrote in his diary that the storm",
    "red, green, blue, red, green, blue, red, green, blue, red,",
    "def area(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n    return",
    "Question: Which season comes after winter?\nAnswer: After winter",
)
