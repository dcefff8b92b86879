"""`--json-schema`: from what the user gave to a grammar."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from specdec_cli.errors import UsageError
from specdec_cli.files import read_file
from specdec_cli.llama.json_converter import converter_class


def json_schema_to_grammar(source: str) -> tuple[str, tuple[str, ...]]:
    """The GBNF of a JSON schema, and its keywords that the GBNF does not enforce, sorted.

    `source` is the schema itself if it begins with a curly bracket or is `true`, else its file.

    Raises:
        UsageError: the file cannot be read, it is no JSON or no schema, or it cannot be converted.
        ModelError: the bindings do not load, or have no converter.
    """
    inline = source.lstrip().startswith("{") or source.strip() == "true"
    name = "the schema of --json-schema" if inline else f"schema {source:.80}"
    schema = _parse(source if inline else _read(source, name), name)
    convert = converter_class()
    try:
        converter = convert(schema)
        return converter.grammar(), tuple(sorted(converter.unenforced))
    except Exception as error:  # the converter has no errors of its own: it asserts, or trips over what it finds
        raise _inconvertible(name, error) from None


def _read(path: str, name: str) -> str:
    hint = "give a file, or the schema itself, which begins with {"
    try:
        return read_file(Path(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: {error.reason} at byte {error.start}", hint=hint) from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}", hint=hint) from None


def _parse(text: str, name: str) -> Any:
    hint = "it must be a JSON schema"
    try:
        schema = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{name} is not JSON: {error.msg} at {where}", hint=hint) from None
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number of thousands of digits
        raise _inconvertible(name, error) from None
    if not isinstance(schema, dict) and schema is not True:
        raise UsageError(f"{name} is neither an object nor true", hint=hint)
    return schema


def _inconvertible(name: str, error: Exception) -> UsageError:
    is_told = isinstance(error, ValueError | AssertionError | RecursionError | re.error)
    reason = " ".join(str(error).split()) if is_told else "one of its keywords has a value of the wrong kind"
    return UsageError(f"{name} cannot be converted: {reason:.120}", hint="simplify it, or write a --grammar")
