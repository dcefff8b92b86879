"""A JSON schema as a document: typed look-ups, references within it, and several schemas made one.

`path` says in JSON pointer's notation where in the document something stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from urllib.parse import unquote

from specdec_cli.errors import UsageError

UNENFORCED: Final = frozenset(
    {"not", "if", "then", "else", "multipleOf", "$dynamicRef", "$recursiveRef"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"}
    | {"dependencies", "dependentRequired", "dependentSchemas"}
    | {"contains", "minContains", "maxContains", "uniqueItems", "unevaluatedItems"}
)
"""Keywords that a grammar cannot enforce, or that would make it as large as all that they allow."""

RANGE: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})

OF_TYPE: Final = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "integer": RANGE,
    "number": RANGE,
    "boolean": frozenset[str](),
    "null": frozenset[str](),
}
"""The keywords that say something about each type."""

MEANINGFUL: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "const", "enum", "type"}).union(*OF_TYPE.values())
"""What is neither here nor in `UNENFORCED` is a remark."""

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """A schema with all that it refers to; `name` is how a message calls it."""

    root: Any
    name: str

    def refuse(self, path: str, what: str, *, hint: str = "take that out, and check the answer yourself") -> NoReturn:
        """Raise a UsageError: the schema does `what`, at `path`."""
        raise UsageError(f"{self.name} {what}, at {path}", hint=hint)

    def get(self, schema: Schema, key: str, kind: Any, path: str, *default: Any) -> Any:
        """The value of `key`, which must be of Python's type `kind`; without a `default` it must be there."""
        if key not in schema and default:
            return default[0]
        if not isinstance(schema[key], kind):
            self.refuse(path, f"has {key} {json.dumps(schema[key])}", hint="that is no JSON schema")
        return schema[key]

    def choices(self, schema: Schema, key: str, path: str) -> list[Any]:
        """The list under `key`, which must not be empty."""
        found: list[Any] = self.get(schema, key, list, path)
        if not found:
            self.refuse(path, f"has an empty {key}")
        return found

    def target(self, reference: str, path: str) -> Any:
        """The part that `reference` names; what lies outside of the document is never fetched."""
        if reference == "#":
            return self.root
        if not reference.startswith("#/"):
            hint = "put what it refers to under $defs and write it as #/$defs/name; nothing is fetched"
            self.refuse(path, f"refers to {reference}", hint=hint)
        target = self.root
        for part in unquote(reference).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and key.isdecimal() and int(key) < len(target):
                target = target[int(key)]
            elif isinstance(target, dict) and key in target:
                target = target[key]
            else:
                self.refuse(path, f"refers to {reference}, which is not there", hint="check the name")
        return target

    def merged(self, parts: Iterable[Any], path: str) -> Schema:
        """One schema that accepts what all `parts` accept; references in them are followed."""
        whole = [self._followed(part, path) for part in parts]
        for part in whole:
            self.get(part, "properties", dict, path, {})
        closed = any(part.get("additionalProperties", True) is not True for part in whole)
        if closed and sum("properties" in part for part in whole) > 1:
            self.refuse(path, "combines properties with additionalProperties")
        merged: Schema = {}
        for part in whole:
            for key in sorted((MEANINGFUL | UNENFORCED) & part.keys()):
                merged[key] = self._both(key, merged[key], part[key], path) if key in merged else part[key]
        return merged

    def _followed(self, part: Any, path: str) -> Schema:
        if part is True:
            return {}
        if not isinstance(part, dict):
            self.refuse(path, "combines what is no schema")
        if "$ref" not in part:
            return part
        return self.merged([self.target(self.get(part, "$ref", str, path), path), without(part, "$ref")], path)

    def _both(self, key: str, one: Any, other: Any, path: str) -> Any:
        if key == "required" and isinstance(one, list) and isinstance(other, list):
            return [*one, *(name for name in other if name not in one)]
        if key == "properties" and all(one[name] == other[name] for name in one.keys() & other.keys()):
            return {**one, **other}
        if one != other:
            self.refuse(path, f"combines two different {key}", hint="write what both allow as one schema")
        return one


def without(schema: Schema, keyword: str) -> Schema:
    """What `schema` says besides `keyword`, without remarks."""
    return {key: value for key, value in schema.items() if key in MEANINGFUL | UNENFORCED and key != keyword}
