"""JSON for stdout: an object on one line that no terminal obeys."""

from __future__ import annotations

import json
from typing import Any, Final

ESCAPES: Final = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""What JSON allows in a string, and a terminal or another reader of lines would obey."""


def to_line(value: Any) -> str:
    """`value` as strict JSON; paths and the like as text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str).translate(ESCAPES) + "\n"
