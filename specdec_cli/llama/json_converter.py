"""From a JSON schema to a grammar: every answer that follows it is valid JSON that the schema accepts.

Where a schema leaves more open than is of use the grammar is narrower: objects have the declared properties in
their order, tuples all of their items, numbers limits. `oneOf` is read as `anyOf`. What a grammar cannot enforce
is refused, never dropped; llama-cpp-python's own converter drops bounds, and breaks on quotes and on `\\d`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from specdec_cli.llama.json_document import OF_TYPE, UNENFORCED, Document, Schema, without
from specdec_cli.llama.json_pattern import pattern_rule
from specdec_cli.llama.json_rules import FORMATS, RULES, integers, literal, quoted

MOST_COUNTED: Final = 2000
"""llama.cpp's grammars count no further."""

PYTHON_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


class Converter:
    """The rules of one schema. The methods that make a rule give what can stand in a sequence."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._rules: dict[str, str] = {}
        self._references = {"#": "root"}

    def grammar(self) -> str:
        """The GBNF of the whole document.

        Raises:
            UsageError: it is no schema, or not one that a grammar can enforce.
        """
        self._rules["root"] = self._rule(self._document.root, "#")
        return "\n".join(f"{name} ::= {rule}" for name, rule in self._rules.items()) + RULES

    def _rule(self, schema: Any, path: str) -> str:
        if schema is True:
            return "value"
        if not isinstance(schema, dict):
            what = "allows nothing" if schema is False else "is neither an object nor true or false"
            self._document.refuse(path, what, hint="that is no JSON schema to follow")
        for keyword in sorted(UNENFORCED & schema.keys()):
            if schema[keyword] is not False:
                self._document.refuse(path, f"uses {keyword}, which a grammar cannot enforce")
        if schema.get("nullable") is True:
            return f"({self._rule({**schema, 'nullable': False}, path)} | null)"
        combine: dict[str, Callable[[Schema, str], str]] = {
            "$ref": self._reference,
            "allOf": self._all,
            "anyOf": lambda schema, path: self._any("anyOf", schema, path),
            "oneOf": lambda schema, path: self._any("oneOf", schema, path),
            "const": lambda schema, path: self._constants("const", [schema["const"]], schema, path),
            "enum": lambda schema, path: self._constants(
                "enum", self._document.choices(schema, "enum", path), schema, path
            ),
        }
        return next((make for word, make in combine.items() if word in schema), self._of_type)(schema, path)

    def _reference(self, schema: Schema, path: str) -> str:
        reference = self._document.get(schema, "$ref", str, path)
        if without(schema, "$ref"):
            return self._rule(self._document.merged([schema], path), path)
        target = self._document.target(reference, path)
        if reference not in self._references:
            name = self._references[reference] = f"definition-{len(self._references)}"
            self._rules[name] = self._rule(target, reference)
        return self._references[reference]

    def _all(self, schema: Schema, path: str) -> str:
        parts, beside = self._document.choices(schema, "allOf", path), without(schema, "allOf")
        if len(parts) == 1 and not beside:
            return self._rule(parts[0], f"{path}/allOf/0")
        return self._rule(self._document.merged([beside, *parts], path), path)

    def _any(self, keyword: str, schema: Schema, path: str) -> str:
        beside = without(schema, keyword)
        rules = [
            self._rule(self._document.merged([beside, option], path) if beside else option, f"{path}/{keyword}/{at}")
            for at, option in enumerate(self._document.choices(schema, keyword, path))
        ]
        return f"({' | '.join(rules)})"

    def _constants(self, keyword: str, values: list[Any], schema: Schema, path: str) -> str:
        beside = without(schema, keyword)
        kinds = beside.pop("type", list(PYTHON_TYPES))
        fitting = [value for value in values if _is_one_of(value, kinds if isinstance(kinds, list) else [kinds])]
        if beside or not fitting:
            self._document.refuse(path, f"has {' and '.join(beside) or 'another type'} beside {keyword}")
        return f"({' | '.join(literal(json.dumps(value, ensure_ascii=False)) for value in fitting)})"

    def _of_type(self, schema: Schema, path: str) -> str:
        kind = schema.get("type") or next((kind for kind, words in OF_TYPE.items() if words & schema.keys()), "any")
        if isinstance(kind, list):
            return f"({' | '.join(self._of_type({**schema, 'type': each}, path) for each in kind)})"
        rules: dict[str, Callable[[Schema, str], str]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda *_: "boolean",
            "null": lambda *_: "null",
        }
        if "type" not in schema and kind == "any":
            return "value"
        if not isinstance(kind, str) or kind not in rules:
            self._document.refuse(path, f"has the type {json.dumps(kind)}", hint=f"types are {', '.join(rules)}")
        return rules[kind](schema, path)

    def _object(self, schema: Schema, path: str) -> str:
        declared = self._document.get(schema, "properties", dict, path, {})
        properties = {name: each for name, each in declared.items() if each is not False}
        required = self._document.get(schema, "required", list, path, [])
        others = schema.get("additionalProperties", not properties)
        for name in required:
            if not isinstance(name, str) or (name not in properties and schema.get("additionalProperties") is False):
                self._document.refuse(path, f"requires {json.dumps(name)}, which cannot be there")
            properties.setdefault(name, others or True)
        members = []
        for name, each in properties.items():
            key = literal(json.dumps(name, ensure_ascii=False))
            rule = f"{key} colon {self._rule(each, f'{path}/properties/{name}')}"
            members.append((self._named("property", rule), "" if name in required else "?"))
        if others is not False:
            key = quoted(_other_than(list(properties))) if properties else "string"
            rule = f"{key} colon {self._rule(others, f'{path}/additionalProperties')}"
            members.append((self._named("property", rule), "*"))
        return f'"{{" space {self._members(members)} "}}"'

    def _members(self, members: list[tuple[str, str]]) -> str:
        """Each member is a rule and how often it comes: "" once, "?" perhaps, "*" any number of times."""
        always = next((at for at, (_, times) in enumerate(members) if not times), None)
        if always is not None:
            before = [f"({rule} comma){times}" for rule, times in members[:always]]
            after = [f"(comma {rule}){times}" for rule, times in members[always + 1 :]]
            return " ".join([*before, members[always][0], *after, "space"])
        starts: list[str] = []
        rest = ""
        for rule, times in reversed(members):
            following = f"(comma {rule}){times} {rest}"
            starts.append(f"{rule} {following if times == '*' else rest}")
            rest = self._named("rest", following)
        return f"(({' | '.join(starts)}) space)?" if starts else ""

    def _array(self, schema: Schema, path: str) -> str:
        items = schema.get("prefixItems", schema.get("items", True))
        least, most = self._bounds(schema, "Items", path)
        if items is False or most == 0:
            items = []
        if isinstance(items, list):
            return self._tuple(items[:most], least, path)
        item = self._named("item", self._rule(items, f"{path}/items"))
        following = self._named("next", f"comma {item}")
        rule = f"{item} {following}{_times(max(least - 1, 0), None if most is None else most - 1)} space"
        return f'"[" space {rule if least else f"({rule})?"} "]"'

    def _tuple(self, items: list[Any], least: int, path: str) -> str:
        if least > len(items):
            self._document.refuse(path, f"wants {least} items and describes {len(items)}")
        rules = [self._rule(item, f"{path}/prefixItems/{at}") for at, item in enumerate(items)]
        return f'"[" space {" comma ".join(rules)} space "]"'

    def _string(self, schema: Schema, path: str) -> str:
        least, most = self._bounds(schema, "Length", path)
        bounded = least > 0 or most is not None
        if "pattern" in schema:
            pattern = self._document.get(schema, "pattern", str, path)
            if bounded:
                self._document.refuse(path, "bounds the length of a pattern", hint="say the length in the pattern")
            try:
                return quoted(pattern_rule(pattern))
            except ValueError as error:
                self._document.refuse(path, f"has a pattern that a grammar cannot follow: {error} in {pattern!r}")
        if bounded:
            return quoted("character" + _times(least, most))
        kept = FORMATS.get(str(schema.get("format")))
        return quoted(kept) if kept else "string"

    def _integer(self, schema: Schema, path: str) -> str:
        bounds = {
            word: self._document.get(schema, word, (int, float), path) for word in OF_TYPE["integer"] & schema.keys()
        }
        if any(
            isinstance(each, bool) or (isinstance(each, float) and not each.is_integer()) for each in bounds.values()
        ):
            self._document.refuse(path, "bounds an integer by what is none")
        lowest = [int(bounds[word]) + by for word, by in (("minimum", 0), ("exclusiveMinimum", 1)) if word in bounds]
        highest = [int(bounds[word]) - by for word, by in (("maximum", 0), ("exclusiveMaximum", 1)) if word in bounds]
        if lowest and highest and min(highest) < max(lowest):
            self._document.refuse(path, "allows no integer")
        return f"({integers(max(lowest, default=None), min(highest, default=None))})" if bounds else "integer"

    def _number(self, schema: Schema, path: str) -> str:
        bounds = {word: schema[word] for word in sorted(OF_TYPE["number"] & schema.keys())}
        if bounds and bounds != {"minimum": 0}:
            hint = "a grammar can bound integers, and other numbers by minimum 0"
            self._document.refuse(path, f"bounds numbers by {' and '.join(bounds)}", hint=hint)
        return "unsigned" if bounds else "number"

    def _bounds(self, schema: Schema, what: str, path: str) -> tuple[int, int | None]:
        least = self._document.get(schema, f"min{what}", int, path, 0)
        most = self._document.get(schema, f"max{what}", int, path, None)
        if most is not None and most < least:
            self._document.refuse(path, f"has min{what} {least} and max{what} {most}")
        for bound in (least, most or 0):
            if not 0 <= bound <= MOST_COUNTED:
                hint = f"llama.cpp's grammars count up to {MOST_COUNTED}"
                self._document.refuse(path, f"counts {what.lower()} up to {bound}", hint=hint)
        return least, most

    def _named(self, kind: str, rule: str) -> str:
        name = f"{kind}-{len(self._rules)}"
        self._rules[name] = rule
        return name


def _is_one_of(value: Any, kinds: list[Any]) -> bool:
    exact = isinstance(value, bool)  # which is an int to Python, and no number to JSON
    return any(isinstance(value, PYTHON_TYPES.get(kind, ())) for kind in kinds if not exact or kind == "boolean")


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _other_than(names: list[str]) -> str:
    """What a string may say that is none of `names`; no escapes until it differs from all of them."""
    heads = sorted({name[0] for name in names if name})
    excluded = "".join(f"\\U{ord(head):08X}" for head in heads)
    branches = [f'[^"\\\\\\x00-\\x1f{excluded}] character*'] + [
        f"{literal(head)} {_other_than([name[1:] for name in names if name[:1] == head])}"
        for head in heads
        if head not in '"\\' and head >= " "
    ]
    return f"({' | '.join(branches)})" + ("" if "" in names else "?")
