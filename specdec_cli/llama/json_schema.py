"""`--json-schema`: from what the user gave to a grammar that every answer must follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

from specdec_cli.errors import UsageError
from specdec_cli.llama.json_converter import Converter
from specdec_cli.llama.json_document import Document


def json_schema_to_grammar(source: str) -> str:
    """The GBNF of a JSON schema. `source` is the schema itself if it begins with a curly bracket, else its file.

    Raises:
        UsageError: the file cannot be read, it is no JSON or no schema, or a grammar cannot enforce it.
    """
    inline = source.lstrip().startswith("{")
    name = "the schema of --json-schema" if inline else f"schema {source}"
    text = source if inline else _read(source)
    try:
        schema = json.loads(text, parse_constant=_refuse_constant)
        return Converter(Document(schema, name)).grammar()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{name} is not JSON: {error.msg} at {where}", hint="it must be a schema in JSON") from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply, or combines itself with itself", hint="simplify it") from None


def _read(path: str) -> str:
    hint = "give a file, or the schema itself, which begins with {"
    try:
        return Path(path).read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"schema {path} is not UTF-8: {error.reason} at byte {error.start}", hint=hint) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name holds a zero byte"
        raise UsageError(f"schema {path:.80} cannot be read: {reason}", hint=hint) from None


def _refuse_constant(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant} is no number of JSON", constant, 0)
