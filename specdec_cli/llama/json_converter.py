"""The bindings' converter from a JSON schema to a grammar, mended.

It is mended only where what follows its grammar would be no JSON, or where it crashes on a sound schema. So it
stays narrower than the schema (properties in their order and no others, tuples whole) and ignores many keywords;
those are named, for the user to check the answer. `oneOf` is read as `anyOf`, and what comes under
`additionalProperties` may repeat a declared name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import unquote

from specdec_cli.errors import ModelError
from specdec_cli.llama.gbnf import DEEPEST
from specdec_cli.llama.json_pattern import pattern_to_grammar
from specdec_cli.llama.library import llama

RANGE: Final = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
OF_TYPE: Final[dict[str, set[str]]] = {
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"}
    | {"propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}
    | {"contains", "minContains", "maxContains", "unevaluatedItems"},
    "string": {"pattern", "format", "minLength", "maxLength"},
    "integer": RANGE,
    "number": RANGE,
    "boolean": set(),
    "null": set(),
}
OF_ALL: Final = {"$ref", "$dynamicRef", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "const", "enum"}
MERGED: Final = {"type", "properties", "required", "additionalProperties"}
"""What the converter reads in a part of allOf, all of whose properties it makes required."""

KEYWORDS: Final = OF_ALL.union({"type"}, *OF_TYPE.values())
"""What is not here is a remark."""

READ: Final = {
    **dict.fromkeys(("$ref", "oneOf", "anyOf", "const", "enum"), ""),
    "properties": "required additionalProperties",
    "additionalProperties": "required",
    "allOf": "",
    "items": "minItems maxItems",
    "prefixItems": "minItems maxItems",
    "pattern": "",
    "format": "",
    "minLength": "maxLength",
    "maxLength": "",
}
"""The converter reads the first of these that a schema has, and what stands behind it here; nothing else."""

FORMATS: Final = re.compile("date|time|date-time|uuid[1-5]?")

CHARACTER: Final = (
    r'[^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cefA-CEF] [0-9a-fA-F] | [dD] [0-7]) [0-9a-fA-F]{2})'
)
"""No raw control characters, and no halves of surrogate pairs: strict parsers refuse them."""


@cache
def converter_class() -> Any:
    """The class; an instance is made from a parsed schema, and raises any exception for one that it cannot convert.

    Raises:
        ModelError: the bindings do not load, or have no converter.
    """
    llama()
    try:
        from llama_cpp.llama_grammar import SchemaConverter
    except ImportError as error:
        hint = "install the version of llama-cpp-python that specdec asks for"
        raise ModelError(f"llama-cpp-python cannot convert schemas: {error}", hint=hint) from error

    class Converter(_Repairs, SchemaConverter):  # type: ignore[misc]
        """The converter of the bindings, mended."""

    return Converter


class _Repairs:
    """What stands before the converter's own methods; it calls them by its names for them."""

    _rules: dict[str, str]

    def __init__(self, document: Any) -> None:
        base: Any = super()
        base.__init__(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)
        self._refs = _Targets(document)
        self._definitions: dict[str, str] = {}
        self.unenforced: set[str] = set()

    def grammar(self) -> str:
        """The GBNF of the whole document. No name of a property can be taken for a rule's behind its prefix."""
        self._rules["root"] = self.visit(self._refs["#"], "answer")
        return "\n".join(f"{name} ::= {rule}" for name, rule in self._rules.items()) + "\n"

    def visit(self, schema: Any, name: str) -> str:
        if schema is True:
            schema = {}
        if not isinstance(schema, dict):
            raise ValueError(f"{json.dumps(schema)} allows nothing" if schema is False else f"{schema!r} is no schema")
        schema = self._readable(schema)
        self.unenforced |= _overlooked(schema, self._refs)
        base: Any = super()
        return str(base.visit(schema, name))

    def _readable(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The same schema, as the converter can read it."""
        read = {word: value for word, value in schema.items() if not _says_nothing(word, schema)}
        for word in ("minLength", "maxLength", "minItems", "maxItems"):  # the converter nests a group for each count
            if read.get(word, 0) > DEEPEST:
                del read[word]
                self.unenforced.add(word)
        _check_counts(read)
        kind = read.get("type")
        if "*" in read.get("properties", {}):
            raise ValueError('a property is named "*", which means any other to the converter')
        if len(read.get("allOf", ())) == 1 and not read.keys() & KEYWORDS - {"type", "allOf"}:
            read["anyOf"] = read.pop("allOf")
        if isinstance(kind, list) and not read.keys() & {"$ref", "oneOf", "anyOf"}:
            del read["type"]
            return read if read.keys() & {"const", "enum"} else {"anyOf": [{**read, "type": each} for each in kind]}
        if isinstance(kind, str) and kind not in OF_TYPE:
            raise ValueError(f"{kind!r} is no type")
        return read if read.keys() & KEYWORDS else {"type": "value"}

    def _resolve_ref(self, reference: str) -> str:
        if reference not in self._definitions:
            name = self._definitions[reference] = f"definition-{len(self._definitions)}"
            made = self.visit(self._refs[reference], name)
            self._rules.setdefault(name, made)
        return self._definitions[reference]

    def _add_rule(self, name: str, rule: str) -> str:
        if not rule:
            raise ValueError("an empty list of what is allowed")
        if name == "char":
            rule = CHARACTER
        elif name.endswith("-rest") and re.fullmatch(r"[\w-]+-additional-kvs\d*", rule):
            rule = f'("," space {rule})?'
        base: Any = super()
        return str(base._add_rule(name, rule))

    def _format_literal(self, text: str) -> str:
        """The GBNF of a constant or a name, which comes as JSON; without raw controls JSON's escapes are GBNF's."""
        as_said = json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False)
        return json.dumps(as_said, ensure_ascii=False)

    def _visit_pattern(self, pattern: str, name: str) -> str:
        inside = pattern_to_grammar(pattern, self._add_rule("char", CHARACTER))
        return self._add_rule(name, rf'"\"" {inside} "\"" space')


class _Targets(dict[str, Any]):
    """What each reference of a document refers to."""

    def __init__(self, document: Any) -> None:
        super().__init__({"#": document})

    def __missing__(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            raise ValueError(f"$ref {reference!r} is not in it, and nothing is fetched")
        target = self["#"]
        try:
            for part in unquote(reference).split("/")[1:]:
                key = part.replace("~1", "/").replace("~0", "~")
                target = target[int(key) if isinstance(target, list) else key]
        except (LookupError, TypeError, ValueError):
            raise ValueError(f"$ref {reference!r} leads nowhere") from None
        return target


def _check_counts(schema: Mapping[str, Any]) -> None:
    for least, most in (("minLength", "maxLength"), ("minItems", "maxItems")):
        if least in schema and most in schema and schema[least] > schema[most]:
            raise ValueError(f"its {least} is above its {most}")


def _says_nothing(word: str, schema: Mapping[str, Any]) -> bool:
    """Whether the keyword `word` forbids nothing that the converter would allow without it."""
    if word == "items":
        return schema[word] in ({}, True) or (schema[word] is False and "prefixItems" in schema)
    if word == "additionalProperties":
        return schema[word] in ({}, True) and "properties" not in schema
    return word in ("uniqueItems", "minItems", "minLength", "minProperties") and schema[word] in (False, 0)


def _overlooked(schema: Mapping[str, Any], targets: Mapping[str, Any]) -> set[str]:
    """The keywords of one `schema` that the converter does not read, or not in full."""
    kind = None if isinstance(schema.get("type"), list) else schema.get("type")
    relevant = schema.keys() & (OF_ALL.union(OF_TYPE.get(kind, ())) if kind else KEYWORDS)
    readable = relevant - ({"allOf"} if kind not in (None, "object") else set())  # it reads allOf of objects only
    if not FORMATS.fullmatch(schema.get("format", "date")):
        readable -= {"format"}
    first = next((word for word in READ if word in readable), "")
    overlooked = relevant - {first, *READ.get(first, "").split()}
    parts = [targets[part["$ref"]] if "$ref" in part else part for part in schema[first]] if first == "allOf" else []
    if any("properties" not in part or part.keys() & KEYWORDS - MERGED for part in parts):
        overlooked.add("allOf")
    if kind is not None and first in ("$ref", "anyOf", "oneOf", "const", "enum"):
        overlooked.add("type")
    if not set(schema.get("required", ())) <= set(schema.get("properties", ())):
        overlooked.add("required")
    return overlooked
