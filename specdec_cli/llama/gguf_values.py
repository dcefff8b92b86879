"""Typed look-ups in the metadata of a GGUF that ggml has opened."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from specdec_cli.llama.library import ggml

UINT16, UINT32, INT32, BOOL, STRING, ARRAY = 2, 4, 5, 7, 8, 9
ARRAYS: Final = {
    UINT32: ctypes.c_uint32,
    INT32: ctypes.c_int32,
    BOOL: ctypes.c_bool,
}
"""What the arrays of whole numbers and truth values are made of."""
SCALARS: Final = {
    0: ("u8", ctypes.c_uint8),
    1: ("i8", ctypes.c_int8),
    2: ("u16", ctypes.c_uint16),
    3: ("i16", ctypes.c_int16),
    4: ("u32", ctypes.c_uint32),
    5: ("i32", ctypes.c_int32),
    6: ("f32", ctypes.c_float),
    7: ("bool", ctypes.c_bool),
    8: ("str", ctypes.c_char_p),
    10: ("u64", ctypes.c_uint64),
    11: ("i64", ctypes.c_int64),
    12: ("f64", ctypes.c_double),
}
"""How ggml names the types of single values, and what it returns for each."""
Scalar = int | float | bool | str | None
"""A single value; None stands for an array."""


class Values:
    """Typed look-ups in a GGUF's metadata; ggml aborts on a wrong type, so the type is checked first."""

    def __init__(self, context: int) -> None:
        self._context = context

    def text(self, key: str) -> str:
        """A string; empty if there is none."""
        at = self._find(key, STRING)
        return "" if at is None else str(self._get("gguf_get_val_str", ctypes.c_char_p, at).decode("utf-8", "replace"))

    def number(self, key: str) -> int | None:
        """An unsigned integer of 16 or 32 bits."""
        for kind, name, result in ((UINT32, "u32", ctypes.c_uint32), (UINT16, "u16", ctypes.c_uint16)):
            at = self._find(key, kind)
            if at is not None:
                return int(self._get(f"gguf_get_val_{name}", result, at))
        return None

    def flag(self, key: str) -> bool | None:
        """A truth value."""
        at = self._find(key, BOOL)
        return None if at is None else bool(self._get("gguf_get_val_bool", ctypes.c_bool, at))

    def strings(self, key: str) -> list[bytes]:
        """An array of strings; empty if there is none."""
        at = self._find(key, ARRAY)
        if at is None or self._get("gguf_get_arr_type", ctypes.c_int, at) != STRING:
            return []
        each = ggml("gguf_get_arr_str", ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t))
        return [each(self._context, at, index) for index in range(self._get("gguf_get_arr_n", ctypes.c_size_t, at))]

    def integers(self, key: str) -> list[int]:
        """An array of signed integers of 32 bits."""
        at = self._find(key, ARRAY)
        if at is None or self._get("gguf_get_arr_type", ctypes.c_int, at) != INT32:
            return []
        count = self._get("gguf_get_arr_n", ctypes.c_size_t, at)
        data = self._get("gguf_get_arr_data", ctypes.c_void_p, at)
        return list((ctypes.c_int32 * count).from_address(data)) if count else []

    def numbers(self, key: str) -> list[int]:
        """Whole numbers or truth values: those of an array, or a single one as a list; empty if there are none."""
        at = self._at(key)
        if at < 0:
            return []
        if self._get("gguf_get_kv_type", ctypes.c_int, at) != ARRAY:
            value = self.scalar(key)
            return [int(value)] if isinstance(value, int) else []
        element = ARRAYS.get(self._get("gguf_get_arr_type", ctypes.c_int, at))
        count = self._get("gguf_get_arr_n", ctypes.c_size_t, at)
        if element is None or not count:
            return []
        data = self._get("gguf_get_arr_data", ctypes.c_void_p, at)
        return [int(each) for each in (element * count).from_address(data)]

    def has(self, key: str) -> bool:
        """Whether there is such a key."""
        return self._at(key) >= 0

    def scalar(self, key: str) -> Scalar:
        """The value of `key`, which is there, whatever its type."""
        at = self._at(key)
        name, result = SCALARS.get(self._get("gguf_get_kv_type", ctypes.c_int, at), ("", None))
        if result is None:
            return None
        value: int | float | bool | bytes = self._get(f"gguf_get_val_{name}", result, at)
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    def _find(self, key: str, kind: int) -> int | None:
        at = self._at(key)
        found = at >= 0 and self._get("gguf_get_kv_type", ctypes.c_int, at) == kind
        return at if found else None

    def _at(self, key: str) -> int:
        """The index of `key`; below 0 if it is not there."""
        find = ggml("gguf_find_key", ctypes.c_int64, (ctypes.c_void_p, ctypes.c_char_p))
        return int(find(self._context, key.encode()))

    def _get(self, name: str, result: Any, at: int) -> Any:
        return ggml(name, result, (ctypes.c_void_p, ctypes.c_int64))(self._context, at)
