from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specdec_cli.core.past import Mask
from specdec_cli.errors import EXIT_USAGE, ModelError, UsageError
from specdec_cli.llama import json_converter
from specdec_cli.llama.gbnf import DEEPEST
from specdec_cli.llama.json_schema import json_schema_to_grammar
from specdec_cli.llama.weights import Weights
from tests.engine import loaded
from tests.llama.following import follows, mask_of
from tests.toy_gguf import EOS, attention_toy


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weights]:
    path = attention_toy().write(tmp_path_factory.mktemp("schema") / "model.gguf")
    with loaded(path) as weights:
        yield weights


def mask_of_schema(weights: Weights, schema: Any) -> Mask:
    return mask_of(weights, json_schema_to_grammar(json.dumps(schema))[0])


PERSON = {
    "title": "Person",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "email": {"type": "string"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "number"},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["value", "next"],
        }
    },
    "$ref": "#/$defs/node",
}
CASES: list[tuple[Any, list[str], list[str]]] = [
    (
        PERSON,
        ['{"name": "Jo", "age": 3}', '{ "name" : "é\\n🙂", "age": 0, "email": ""}', '{"name":"","age":12}'],
        ['{"age": 3, "name": "Jo"}', '{"name": "Jo"}', '{"name": "Jo", "age": 3, "x": 1}', '{"name": "\n", "age": 3}'],
    ),
    (
        {"enum": ["a", 'say "hi"', "back\\slash\n", "🙂", 1.5, None]},
        ['"a"', "null", "1.5", '"say \\"hi\\""', '"back\\\\slash\\n"', '"🙂"'],
        ['"b"', "1", "a", '"say "hi""', '"back\\slash\\n"', '"back\\\\slash\n"'],
    ),
    ({"type": ["string", "null"], "enum": ["a", None]}, ['"a"', "null"], ["1", '"b"']),
    ({"const": {"a": [1, True]}}, ['{"a": [1, true]}'], ['{"a": [1, 1]}']),
    (
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
        ["[true, false]", "[true,true,true]", "[ true , true ] "],
        ["[]", "[true]", "[true, true, true, true]", "[true true]", "[true, true,]"],
    ),
    ({"type": "array", "items": {"type": "null"}}, ["[]", "[null]", "[null, null, null]"], ["[1]", "[,]", "{}"]),
    ({"items": {}, "type": "array"}, ["[]", '[{"a": [1]}, 2]'], ["{}"]),
    (
        {"prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": False},
        ["[null, true]"],
        ["[null]", "[]", "[null, true, 1]"],
    ),
    ({"type": "string", "pattern": r"^\d{3}-[A-Z]+$"}, ['"123-AB"'], ['"12-AB"', '"123-"', '"x123-AB"']),
    ({"type": "string", "maxLength": 3}, ['""', '"abc"', '"é🙂\\n"'], ['"abcd"', '"\n"', "abc", '"', '"\\ud800"']),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"a\\u00e9"'], ['"a"', '"abcd"']),
    ({"type": "string", "format": "date"}, ['"2026-02-28"'], ['"2026-13-01"', '"28.2.2026"']),
    ({"type": "string", "format": "date-time"}, ['"2026-02-28T12:00:00Z"'], ['"2026-02-28"']),
    ({"type": "string", "format": "uuid"}, ['"123e4567-e89b-12d3-a456-426614174000"'], ['"123e4567"']),
    ({"type": "integer"}, ["0", "-1", "123456"], ["1.0", "01", "-", "1e3", '"1"']),
    ({"type": "number"}, ["0", "-1.5", "1e10", "2.5E-3"], [".5", "1.", "+1", "NaN", "01"]),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, ["1", '"a"'], ["true", "[]"]),
    ({"oneOf": [{"const": "a"}, {"const": "b"}]}, ['"a"', '"b"'], ['"c"']),
    ({"type": ["string", "null"], "maxLength": 1}, ['"a"', "null"], ['"ab"', "1"]),
    (TREE, ['{"value": 1, "next": {"value": 2, "next": null}}'], ['{"value": 1}', '{"value": 1, "next": 2}', "null"]),
    (
        {"type": "object", "properties": {"a": {"$ref": "#"}, "b": True}},
        ["{}", '{"a": {"a": {}}, "b": [1]}', '{"b": 0}'],
        ['{"a": 1}', '{"b": 1, "a": {}}', '{"c": 1}', '{"a": {},}'],
    ),
    (
        {"properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "additionalProperties": {"type": "boolean"}},
        [
            "{}",
            '{"a": null}',
            '{"a": null, "b": null, "c": true, "": false}',
            '{"b": null, "x\\n": true}',
            '{"x": true}',
        ],
        ['{"a": null"x": true}', '{"x": true, "a": null}', '{"a": null, "x": 1}', '{"a": null,}', '{"x": true,}'],
    ),
    (
        {"properties": {"a": {"type": "null"}}, "required": ["a"], "additionalProperties": True},
        ['{"a": null}', '{"a": null, "x": [1], "y": "z"}'],
        ["{}", '{"x": 1}', '{"a": null"x": 1}'],
    ),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, ["{}", '{"a": 1, "b": 2}'], ['{"a": "b"}']),
    ({"type": "object", "additionalProperties": False}, ["{}", "{ }"], ['{"a": 1}']),
    ({"type": "object"}, ["{}", '{"a": {"b": [1, "c", true, null]}}'], ["[]", "1"]),
    ({"properties": {'a"b': True, "é\\": True}, "required": ['a"b']}, ['{"a\\"b": 1, "é\\\\": 2}'], ['{"a"b": 1}']),
    (
        {"$defs": {"color": {"enum": ["red"]}}, "allOf": [{"$ref": "#/$defs/color"}], "default": "red"},
        ['"red"'],
        ["{}"],
    ),
    (
        {
            "$defs": {"base": {"properties": {"id": {"type": "integer"}}, "required": ["id"]}},
            "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"x": {"type": "null"}}, "required": ["x"]}],
        },
        ['{"id": 1, "x": null}'],
        ['{"id": 1}', '{"x": null}'],
    ),
    ({"$ref": "#/$defs/a~1b%20c/0", "$defs": {"a/b c": [{"const": 1}]}}, ["1"], ["2"]),
    (
        {
            "$defs": {"a": {"type": "string"}, "string": {"type": "integer"}, "a-kv": {"type": "null"}},
            "properties": {
                "a": {"$ref": "#/$defs/string"},
                "string": {"$ref": "#/$defs/a"},
                "x": {"$ref": "#/$defs/a-kv"},
            },
        },
        ['{"a": 1, "string": "b", "x": null}'],
        ['{"a": "b"}', '{"string": 1}', '{"x": "a"}'],
    ),
    (
        {
            "properties": {
                "decimal_part": {"const": "a"},
                "n": {"type": "number"},
                "char": True,
                "root": {"type": "null"},
            }
        },
        ['{"decimal_part": "a", "n": 1.5, "char": "b", "root": null}'],
        ['{"n": 1."a"}'],
    ),
    ({"title": "Anything", "default": 3}, ["{}", "[1]", '"a"', "null", "1"], ["", "a", "[", "tru"]),
    ({}, ["{}", "[1]", '"a"', "null", "1"], ["", "a", "[", "tru"]),
]


@pytest.mark.parametrize(("schema", "right", "wrong"), CASES, ids=lambda case: json.dumps(case)[:60])
def test_what_a_schema_accepts_can_be_said_and_nothing_else(
    weights: Weights, schema: Any, right: list[str], wrong: list[str]
) -> None:
    mask = mask_of_schema(weights, schema)
    assert [text for text in right if not follows(mask, text)] == []
    assert [text for text in wrong if follows(mask, text)] == []


def random_answer(mask: Mask, luck: random.Random) -> bytes:
    """A walk over what the mask lets through that makes for the end."""
    tokens = np.array([*range(256), EOS], np.intp)
    answer = bytearray()
    while True:
        allowed = [int(token) for token in tokens[mask.allowed(tokens)]]
        if EOS in allowed and (len(allowed) == 1 or len(answer) > 60 or luck.random() < 0.5):
            return bytes(answer)
        allowed = [token for token in allowed if token != EOS]
        closing = [token for token in allowed if chr(token) in '"]}']
        hurry = closing and (len(answer) > 60 or luck.random() < 0.4)
        answer.append(luck.choice(closing if hurry else allowed))
        mask = mask.after(answer[-1])


@pytest.mark.parametrize("schema", [schema for schema, _, _ in CASES], ids=lambda case: json.dumps(case)[:60])
def test_whatever_a_schema_lets_through_parses_as_json(weights: Weights, schema: Any) -> None:
    luck = random.Random(7)
    mask = mask_of_schema(weights, schema)
    for _ in range(5):
        json.loads(random_answer(mask, luck).decode("utf-8", "replace"))


def test_a_schema_may_be_large(weights: Weights) -> None:
    properties = {f"p{at}": {"type": "string", "maxLength": DEEPEST} for at in range(3)} | {
        f"p{at}": {"type": "integer"} for at in range(3, 120)
    }
    mask = mask_of_schema(weights, {"properties": properties})
    assert follows(mask, '{"p1": "a", "p110": 1, "p119": 2}')
    assert not follows(mask, '{"p1": "a", "p110": 1, "p109": 2}')


def test_a_schema_may_be_just_true_and_may_have_blanks_before_it(weights: Weights, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text("\ufefftrue", "utf-8")
    assert json_schema_to_grammar(str(path)) == json_schema_to_grammar(" true\n") == json_schema_to_grammar("{}")
    assert follows(mask_of(weights, json_schema_to_grammar(' \n{"const": 1}')[0]), "1")


UNENFORCED: list[tuple[Any, tuple[str, ...]]] = [
    (PERSON, ()),
    (TREE, ()),
    (
        {"type": "integer", "minimum": 0, "exclusiveMaximum": 9, "multipleOf": 3},
        ("exclusiveMaximum", "minimum", "multipleOf"),
    ),
    ({"properties": {"minimum": {"type": "number", "maximum": 3}, "not": True}}, ("maximum",)),
    ({"const": {"minimum": 3}}, ()),
    (
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "number", "minimum": 1}, "b": {"type": "number", "maximum": 1}}},
        ("minimum",),
    ),
    ({"type": "array", "items": {"type": "string", "format": "email"}, "uniqueItems": True}, ("format", "uniqueItems")),
    ({"type": "array", "items": {}, "minItems": 1, "uniqueItems": False}, ("minItems",)),
    ({"type": "array", "prefixItems": [{"type": "null"}], "minItems": 1, "maxItems": 1, "items": False}, ()),
    ({"type": "string", "pattern": "^a$", "minLength": 1, "maxLength": 2}, ("maxLength", "minLength")),
    ({"type": "string", "format": "uuid", "maxLength": 40}, ("maxLength",)),
    ({"type": "string", "maxLength": DEEPEST + 1}, ("maxLength",)),
    ({"type": ["string", "integer"], "maxLength": 2, "minimum": 3}, ("minimum",)),
    ({"properties": {"a": {"type": "null"}}, "required": ["a", "b"]}, ("required",)),
    ({"type": "object", "required": ["b"], "minProperties": 1}, ("minProperties", "required")),
    ({"type": "object", "patternProperties": {"^a": {"minimum": 1}}}, ("patternProperties",)),
    ({"anyOf": [{"type": "null"}], "maxLength": 3, "properties": {}}, ("maxLength", "properties")),
    ({"type": "object", "allOf": [{"type": "object"}, {"properties": {"a": {"type": "null"}}}]}, ("allOf",)),
    ({"type": "string", "allOf": [{"maxLength": 1}, {"minLength": 1}]}, ("allOf",)),
    ({"type": "string", "not": {"const": "a"}, "if": {}, "then": {}, "else": {}}, ("else", "if", "not", "then")),
    ({"type": "object", "dependentRequired": {}, "propertyNames": {}}, ("dependentRequired", "propertyNames")),
]


@pytest.mark.parametrize(("schema", "unenforced"), UNENFORCED, ids=lambda case: json.dumps(case)[:60])
def test_keywords_that_are_not_enforced_are_named(schema: Any, unenforced: tuple[str, ...]) -> None:
    assert json_schema_to_grammar(json.dumps(schema))[1] == unenforced


TEXTS = [
    "", "a", "ab", "aab", "b", "abc", "-a_1", "12", "a b", 'a"b', "a\\b", "é", "🙂", "a\nb", "\t", "x.y", "]", "^",
    "A-Z",
]  # fmt: skip
PATTERNS = [
    "", "^$", "a", "^a", "b$", "^(a|b)$", "^(a|bc?)+$", "^[^a]*$", "^[^\\]a-]+$", "^a.b$", "^\\w+$", "^\\S+$", "\\s",
    "^\\D*$", '"', "\\\\", "^a{2}b", "^(?:a|b){1,2}c?$", "^a?b*?$", "^[\\d\\-_a]+$", "^\\x61\\u0062$", "\\.", "]",
    "^[$^]$", "^[ -~]+$", "^(|a)$", "^[[a]$", "^🙂$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_finds_what_it_finds_elsewhere(weights: Weights, pattern: str) -> None:
    mask = mask_of_schema(weights, {"type": "string", "pattern": pattern})
    python = re.compile(pattern.replace("[[", "[\\["), re.ASCII)
    found = [text for text in TEXTS if follows(mask, json.dumps(text, ensure_ascii=False))]
    assert found == [text for text in TEXTS if python.search(text)]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('{"a": 1,}', "is not JSON: Expecting property name enclosed in double quotes at line 1, column 9"),
        ('{"type": "str"}', "cannot be converted: 'str' is no type"),
        ('{"type": "char"}', "'char' is no type"),
        ('{"type": 5}', "Unrecognized schema: {'type': 5}"),
        ('{"maxLength": 5}', "Unrecognized schema"),
        ('{"enum": []}', "an empty list"),
        ('{"anyOf": []}', "an empty list"),
        ('{"anyOf": 3}', "a value of the wrong kind"),
        ('{"properties": {"a": 1}}', "1 is no schema"),
        ('{"properties": {"*": {}}}', 'a property is named "*"'),
        ('{"items": {"anyOf": [false]}}', "false allows nothing"),
        ('{"type": "string", "minLength": "a"}', "a value of the wrong kind"),
        ('{"const": 1e999}', "not JSON compliant"),
        ('{"const": %s}' % ("9" * 5000), "cannot be converted: Exceeds the limit"),
        ('{"$ref": "https://example.com/schema.json"}', "$ref 'https://example.com/schema.json' is not in it"),
        ('{"$ref": "other.json#/a"}', "is not in it, and nothing is fetched"),
        ('{"allOf": [{"$ref": "#name"}, {}]}', "$ref '#name' is not in it"),
        ('{"$ref": "#/$defs/a"}', "$ref '#/$defs/a' leads nowhere"),
        ('{"$ref": "#/a/7", "a": []}', "leads nowhere"),
        ('{"pattern": "(?=a)"}', "a grammar cannot follow (?=a inside the pattern"),
        ('{"pattern": "a^b"}', "cannot follow ^ inside"),
        ('{"pattern": "(a$)"}', "cannot follow $ inside"),
        ('{"pattern": "a{x}"}', "cannot follow { inside"),
        ('{"pattern": "\\\\bword"}', "cannot follow \\b inside"),
        ('{"pattern": "(a)\\\\1"}', "cannot follow \\1 inside"),
        ('{"pattern": "*a"}', "nothing to repeat"),
        ('{"pattern": "\\\\p{L}"}', "bad escape \\p"),
        ('{"pattern": "(a"}', "missing ), unterminated subpattern"),
        ('{"pattern": "[z-a]"}', "bad character range z-a"),
        ('{"pattern": "a{3,2}"}', "min repeat greater than max repeat"),
        ('{"pattern": "\\\\x01"}', "no short escape"),
        ('{"type": "%s"}' % ("long" * 100), "cannot be converted: 'long"),
        ("[" * 100000, "cannot be read"),
        ('{"a":' * 100000, "cannot be converted: maximum recursion depth exceeded"),
        ('{"items":' * 800 + "{}" + "}" * 800, "cannot be converted: maximum recursion depth exceeded"),
    ],
)
def test_a_schema_that_cannot_be_converted_is_told_in_one_short_line(schema: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        json_schema_to_grammar(schema)
    assert reason in caught.value.message
    assert len(caught.value.message.splitlines()) == 1
    assert len(caught.value.message) < 200
    assert caught.value.hint
    assert caught.value.exit_code == EXIT_USAGE


def test_a_schema_that_begins_with_itself_is_refused_before_the_engine_sees_it(weights: Weights) -> None:
    with pytest.raises(UsageError, match="left-recursive"):
        mask_of_schema(weights, {"anyOf": [{"$ref": "#"}, {"type": "null"}]})


def test_a_schema_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    broken, latin, listed = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"
    broken.write_text('{\n  "type": \n}')
    latin.write_bytes(b'{"const": "\xe9"}')
    listed.write_text("[]")
    reasons = {
        broken: "is not JSON: Expecting value at line 3, column 1",
        latin: "is not UTF-8: invalid continuation byte at byte 11",
        listed: "is neither an object nor true",
        tmp_path / "none.json": "cannot be read: No such file",
        tmp_path: "cannot be read: Is a directory",
        Path("a\0b"): "cannot be read: its name holds a zero byte",
    }
    for path, reason in reasons.items():
        with pytest.raises(UsageError) as caught:
            json_schema_to_grammar(str(path))
        assert reason in caught.value.message
        assert len(caught.value.message.splitlines()) == 1


def test_bindings_without_a_converter_are_a_fault_of_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    json_converter.converter_class.cache_clear()
    monkeypatch.setitem(sys.modules, "llama_cpp.llama_grammar", None)
    with pytest.raises(ModelError, match="convert"):
        json_schema_to_grammar("{}")
