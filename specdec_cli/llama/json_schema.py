r"""`--json-schema`: from what the user gave to a grammar, by the converter of the bindings.

It is mended only where what follows its grammar would be no JSON, or where it crashes on a sound schema. So it
stays narrower than the schema (properties in their order and no others, tuples whole) and ignores many keywords;
those are named, for the user to check the answer. `oneOf` is read as `anyOf`, and what comes under
`additionalProperties` may repeat a declared name.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from specdec_cli.errors import UsageError
from specdec_cli.llama.gbnf import DEEPEST
from specdec_cli.llama.library import llama

LONGEST_REASON: Final = 120

RANGE: Final = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
OF_TYPE: Final[dict[str, set[str]]] = {
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"}
    | {"propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}
    | {"contains", "minContains", "maxContains", "unevaluatedItems"},
    "string": {"pattern", "format", "minLength", "maxLength"},
    **dict.fromkeys(["integer", "number"], RANGE),
    **dict.fromkeys(["boolean", "null"], set()),
}
OF_ALL: Final = {"$ref", "$dynamicRef", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "const", "enum"}
KEYWORDS: Final = OF_ALL.union({"type"}, *OF_TYPE.values())
"""What is not here is a remark."""

READ: Final = {
    **dict.fromkeys(["$ref", "oneOf", "anyOf", "const", "enum"], ""),
    "properties": "required additionalProperties",
    "additionalProperties": "required",
    "allOf": "",
    "items": "minItems maxItems",
    "prefixItems": "minItems maxItems",
    **dict.fromkeys(["pattern", "format"], ""),
    "minLength": "maxLength",
    "maxLength": "",
}
"""The converter reads the first of these that a schema has, and then those named beside it, no others."""

FORMATS: Final = re.compile("date|time|date-time|uuid[1-5]?")

CHARACTER: Final = (
    r'[^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cefA-CEF] [0-9a-fA-F] | [dD] [0-7]) [0-9a-fA-F]{2})'
)
"""No raw control characters, and no halves of surrogate pairs: strict parsers refuse them."""

UNESCAPED: Final = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E), (0x80, 0xD7FF), (0xE000, 0x10FFFF))
PIECE: Final = re.compile(
    r"""(?P<group>\((?!\?)|\(\?:|\)|\|)
      | (?P<times>[*+?]|\{\d+(?:,\d*)?\})\??
      | (?P<end>[\^$])
      | (?P<character>\\(?:[dDwWsSnrtfv0]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[^A-Za-z0-9])|\[(?:\\.|[^\]\\])+\]|[^\\[({])
      | (?P<other>\\.|\(\?..?|.)""",
    re.VERBOSE | re.DOTALL,
)


def json_schema_to_grammar(source: str) -> tuple[str, tuple[str, ...]]:
    """The GBNF of a JSON schema, and its keywords that the GBNF does not enforce, sorted.

    `source` is the schema itself if it begins with a curly bracket or is `true`, else its file.

    Raises:
        UsageError: the file cannot be read, it is no JSON or no schema, or it cannot be converted.
        ModelError: the bindings do not load.
    """
    inline = source.lstrip().startswith("{") or source.strip() == "true"
    name = "the schema of --json-schema" if inline else f"schema {source}"
    text = source if inline else _read(source)
    converter_class = _converter_class()
    try:
        schema = json.loads(text)
        if not isinstance(schema, dict) and schema is not True:
            raise UsageError(f"{name} is neither an object nor true", hint="it must be a JSON schema")
        converter = converter_class(schema)
        return converter.grammar(), tuple(sorted(converter.unenforced))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{name} is not JSON: {error.msg} at {where}", hint="it must be a schema in JSON") from None
    except UsageError:
        raise
    except Exception as error:  # the converter has no errors of its own: it asserts, or trips over what it finds
        told = isinstance(error, ValueError | AssertionError | RecursionError)
        reason = " ".join((str(error) if told else f"{type(error).__name__} {error}").split())
        if len(reason) > LONGEST_REASON:
            reason = f"{reason[:LONGEST_REASON]}…"
        raise UsageError(f"{name} cannot be converted: {reason}", hint="simplify it, or write a --grammar") from None


def _read(path: str) -> str:
    hint = "give a file, or the schema itself, which begins with {"
    try:
        return Path(path).read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"schema {path} is not UTF-8: {error.reason} at byte {error.start}", hint=hint) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name holds a zero byte"
        raise UsageError(f"schema {path:.80} cannot be read: {reason}", hint=hint) from None


@cache
def _converter_class() -> Any:
    llama()
    from llama_cpp.llama_grammar import SchemaConverter

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
        kind = read.get("type")
        if "*" in read.get("properties", {}):
            raise ValueError('a property is named "*", which means any other to the converter')
        if len(read.get("allOf", ())) == 1 and not read.keys() & {"oneOf", "anyOf", "properties"}:
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
        """The GBNF of a constant or a name, which comes as JSON."""
        return _literal(json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False))

    def _visit_pattern(self, pattern: str, name: str) -> str:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of brackets inside brackets
            inside = _between_quotes(pattern, self._add_rule("char", CHARACTER))
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


def _says_nothing(word: str, schema: Mapping[str, Any]) -> bool:
    """Whether the keyword `word` of `schema` forbids nothing that its other keywords allow in the converter's eyes."""
    value = schema[word]
    if word == "items":
        return value in ({}, True) or (value is False and "prefixItems" in schema)
    if word == "additionalProperties":
        return value in ({}, True) and "properties" not in schema
    return word in ("uniqueItems", "minItems", "minLength", "minProperties") and value in (False, 0)


def _overlooked(schema: Mapping[str, Any], targets: Mapping[str, Any]) -> set[str]:
    """The keywords of one `schema` that the converter does not read, or not in full."""
    kind = schema.get("type")
    relevant = schema.keys() & (OF_ALL.union(OF_TYPE.get(kind, ())) if kind else KEYWORDS)
    readable = relevant - ({"allOf"} if kind not in (None, "object") else set())
    if not FORMATS.fullmatch(schema.get("format", "date")):
        readable -= {"format"}
    first = next((word for word in READ if word in readable), "")
    return relevant - {first, *READ.get(first, "").split()} | _half_read(first, schema, targets)


def _half_read(word: str, schema: Mapping[str, Any], targets: Mapping[str, Any]) -> set[str]:
    """The keywords that ask more than the converter sees when it reads the keyword `word` of a `schema`."""
    value = schema.get(word)
    if word in ("items", "prefixItems") and isinstance(value, list):
        bounds = {
            "minItems": schema.get("minItems", 0) > len(value),
            "maxItems": schema.get("maxItems", 1e9) < len(value),
        }
        return {bound for bound, is_missed in bounds.items() if is_missed}
    if word == "allOf":
        parts = [targets[part["$ref"]] if "$ref" in part else part for part in schema[word]]
        seen = {"type", "properties", "required", "additionalProperties"}
        return {word} if any("properties" not in part or part.keys() & KEYWORDS - seen for part in parts) else set()
    return {"required"} if set(schema.get("required", ())) - set(schema.get("properties", ())) else set()


def _between_quotes(pattern: str, character: str) -> str:
    """The GBNF of the strings in which `pattern` is found; `character` is the rule of any character in a string."""
    re.compile(pattern)
    pieces = list(PIECE.finditer(pattern))
    begins, ends = pieces[:1] and pieces[0][0] == "^", pieces[1:] and pieces[-1][0] == "$"
    told = [_to_gbnf(piece) for piece in pieces[1 if begins else 0 : -1 if ends else None]]
    return f"{'' if begins else f'{character}* '}({' '.join(told)}){'' if ends else f' {character}*'}"


def _to_gbnf(piece: re.Match[str]) -> str:
    if piece["character"]:
        return _characters(piece[0])
    if piece["group"] or piece["times"]:
        return (piece["times"] or piece["group"]).replace("(?:", "(")
    raise ValueError(f"a grammar cannot follow {piece[0]} inside the pattern {piece.string!r}")


@cache
def _characters(kind: str) -> str:
    """The GBNF of one character that the regular expression `kind` matches, as JSON writes it in a string."""
    kind = r"[^\n\r\u2028\u2029]" if kind == "." else kind
    runs = [run[0] for part in _unescaped() for run in re.finditer(f"(?:{kind})+", part, re.ASCII)]
    options = ["[" + "".join(f"\\U{ord(run[0]):08X}-\\U{ord(run[-1]):08X}" for run in runs) + "]"] if runs else []
    options += [_literal(json.dumps(each)[1:-1]) for each in '"\\\b\f\n\r\t' if re.fullmatch(kind, each, re.ASCII)]
    if not options:
        raise ValueError(f"{kind} stands for characters that JSON has no short escape for")
    return f"({' | '.join(options)})"


@cache
def _unescaped() -> list[str]:
    """All characters that JSON takes as they are, in runs of successive ones."""
    return ["".join(map(chr, range(first, last + 1))) for first, last in UNESCAPED]


def _literal(text: str) -> str:
    """The GBNF of exactly `text`, which holds no line breaks."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
