from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.errors import EXIT_USAGE, UsageError
from specdec_cli.llama.json_pattern import pattern_rule
from specdec_cli.llama.json_rules import integers
from specdec_cli.llama.json_schema import json_schema_to_grammar
from specdec_cli.llama.weights import Weights
from tests.engine import loaded
from tests.llama.following import follows, mask_of
from tests.toy_gguf import attention_toy


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weights]:
    path = attention_toy().write(tmp_path_factory.mktemp("schema") / "model.gguf")
    with loaded(path) as weights:
        yield weights


PERSON = {
    "title": "Person",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}, "email": {"type": "string"}},
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
        ['{"name": "Jo", "age": 3}', '{\n  "name": "é\\n🙂",\n  "age": 0,\n  "email": ""\n}', '{"name":"","age":12}'],
        ['{"age": 3, "name": "Jo"}', '{"name": "Jo"}', '{"name": "Jo", "age": -3}', '{"name": "Jo", "age": 3, "x": 1}'],
    ),
    (
        {"enum": ["a", 'say "hi"', "back\\slash", "new\nline", "🙂", 1.5, None]},
        ['"a"', "null", "1.5"],
        ['"b"', "1", "a"],
    ),
    (
        {"enum": ['say "hi"', "back\\slash\n"]},
        ['"say \\"hi\\""', '"back\\\\slash\\n"'],
        ['"say "hi""', '"back\\slash"'],
    ),
    ({"type": "string", "enum": ["a", 1, None], "nullable": True}, ['"a"', "null"], ["1", '"b"']),
    ({"const": {"a": [1, True]}}, ['{"a": [1, true]}'], ['{"a": [1, 1]}']),
    (
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
        ["[true, false]", "[true,true,true]", "[\n\ttrue, true\n]"],
        ["[]", "[true]", "[true, true, true, true]", "[true true]", "[true, true,]"],
    ),
    ({"type": "array", "items": {"type": "null"}}, ["[]", "[null]", "[null, null, null]"], ["[1]", "[,]", "{}"]),
    ({"type": "array", "maxItems": 1}, ["[]", '[{"a": [1]}]'], ["[1, 2]"]),
    ({"prefixItems": [{"type": "null"}, {"type": "boolean"}], "items": False}, ["[null, true]"], ["[null]", "[]"]),
    ({"type": "string", "pattern": r"^\d{3}-[A-Z]+$"}, ['"123-AB"'], ['"12-AB"', '"123-"', '"x123-AB"']),
    ({"type": "string", "maxLength": 3}, ['""', '"abc"', '"é🙂\\n"'], ['"abcd"', '"\n"', "abc", '"']),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ['"ab"', '"a\\u00e9"'], ['"a"', '"abcd"', '"\\ud83d\\ude00"']),
    ({"type": "string", "format": "date"}, ['"2026-02-28"'], ['"2026-13-01"', '"28.2.2026"']),
    ({"type": "string", "format": "date-time"}, ['"2026-02-28T12:00:00Z"'], ['"2026-02-28"']),
    ({"type": "string", "format": "uuid"}, ['"123e4567-e89b-12d3-a456-426614174000"'], ['"123e4567"']),
    ({"type": "string", "format": "email"}, ['"whatever"'], ["1"]),
    ({"type": "integer"}, ["0", "-1", "123456"], ["1.0", "01", "-", "1e3", '"1"']),
    ({"type": "integer", "minimum": -5, "exclusiveMaximum": 120}, ["-5", "0", "119"], ["-6", "120", "01", "-0"]),
    ({"type": "number"}, ["0", "-1.5", "1e10", "2.5E-3"], [".5", "1.", "+1", "NaN"]),
    ({"type": "number", "minimum": 0}, ["0.5", "1e3"], ["-0.5"]),
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
        {"properties": {"a": {"type": "null"}, "ab": {"type": "null"}}, "additionalProperties": {"type": "boolean"}},
        [
            "{}",
            '{"a": null}',
            '{"ab": null, "abc": true, "": false}',
            '{"b": true, "x\\n": true}',
            '{"a": null, "x": true}',
        ],
        ['{"a": true}', '{"ab": true}', '{"\\u0061": true}', '{"a": null, "ab": true}', '{"a": null, "x": 1}'],
    ),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        ["{}", '{"a": 1, "b": 2}'],
        ['{"a": "b"}', "{1: 1}"],
    ),
    ({"type": "object", "additionalProperties": False}, ["{}", "{ }"], ['{"a": 1}']),
    ({"type": "object"}, ["{}", '{"a": {"b": [1, "c", true, null]}}'], ["[]", "1"]),
    ({"required": ["a"], "additionalProperties": {}, "properties": {"b": {}}}, ['{"b": 1, "a": 2}'], ['{"b": 1}']),
    ({"type": "object", "required": ["a"]}, ['{"a": 1}', '{"a": [], "b": 1}'], ["{}", '{"b": 1}']),
    ({"properties": {'a"b': True, "é": True}, "required": ['a"b']}, ['{"a\\"b": 1, "é": 2}'], ['{"a"b": 1}']),
    (
        {"properties": {"a": True, "b": True, "c": True}, "required": ["b"]},
        ['{"b": 1}', '{"a": 1, "b": 2, "c": 3}'],
        ["{}"],
    ),
    (
        {
            "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        ['{"a": null}', '{"b": null}', '{"a": null, "b": null}'],
        ["{}", '{"c": null}'],
    ),
    ({"$defs": {"color": {"enum": ["red"]}}, "allOf": [{"$ref": "#/$defs/color"}]}, ['"red"'], ["{}"]),
    (
        {
            "$defs": {"base": {"properties": {"id": {"type": "integer"}}, "required": ["id"]}},
            "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"x": {"type": "null"}}, "required": ["x", "id"]}],
        },
        ['{"id": 1, "x": null}'],
        ['{"id": 1}', '{"x": null}'],
    ),
    ({"$ref": "#/$defs/a~1b%20c/0", "$defs": {"a/b c": [{"const": 1}]}}, ["1"], ["2"]),
    (
        {"$ref": "#/$defs/a", "description": "a", "$defs": {"a": {"maxLength": 2}}, "minLength": 1},
        ['"a"'],
        ['""', '"abc"'],
    ),
    ({}, ["{}", "[1]", '"a"', "null", "1"], ["", "a", "[", "tru"]),
]


@pytest.mark.parametrize(("schema", "right", "wrong"), CASES, ids=lambda case: json.dumps(case)[:60])
def test_what_a_schema_accepts_can_be_said_and_nothing_else(
    weights: Weights, schema: Any, right: list[str], wrong: list[str]
) -> None:
    mask = mask_of(weights, json_schema_to_grammar(json.dumps(schema)))
    assert [text for text in right if not follows(mask, text)] == []
    assert [text for text in wrong if follows(mask, text)] == []


@pytest.mark.parametrize("required", [[], ["p150"]])
def test_a_schema_may_be_large(weights: Weights, required: list[str]) -> None:
    properties = {f"p{at}": {"type": "string", "maxLength": 2000} for at in range(3)} | {
        f"p{at}": {"type": "integer"} for at in range(3, 200)
    }
    mask = mask_of(weights, json_schema_to_grammar(json.dumps({"properties": properties, "required": required})))
    assert follows(mask, '{"p1": "a", "p150": 1, "p199": 2}')
    assert not follows(mask, '{"p1": "a", "p150": 1, "p149": 2}')


def test_a_schema_file_may_be_just_true(weights: Weights, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text("true")
    assert follows(mask_of(weights, json_schema_to_grammar(str(path))), '[{"a": null}]')


def test_a_schema_in_the_text_may_have_blanks_before_it(weights: Weights) -> None:
    assert follows(mask_of(weights, json_schema_to_grammar(' \n{"const": 1}')), "1")


@pytest.mark.parametrize(
    ("bounds"),
    [*product((-25, -10, -3, 0, 7, 99, 100), (-9, 0, 5, 99, 100, 1234)), (3, 3), (0, 9), (10, 99), (-99, -10)],
)
def test_integers_in_bounds_are_exactly_those(bounds: tuple[int, int]) -> None:
    expression = re.compile(re.sub('[ "]', "", integers(*bounds)))
    assert [each for each in range(-1300, 1300) if expression.fullmatch(str(each))] == list(
        range(bounds[0], bounds[1] + 1)
    )


@pytest.mark.parametrize(("least", "most"), [(3, None), (None, 3), (None, -7), (10**20, None)])
def test_an_open_side_of_integers_reaches_far(least: int | None, most: int | None) -> None:
    expression = re.compile(re.sub('[ "]', "", integers(least, most)))
    inside, outside = (least, least - 1) if least is not None else (most or 0, (most or 0) + 1)
    far = (10**15 + (least or 0)) * (1 if most is None else -1)
    assert [bool(expression.fullmatch(str(each))) for each in (inside, outside, far)] == [True, False, True]


TEXTS = [
    "",
    "a",
    "ab",
    "aab",
    "b",
    "abc",
    "-a_1",
    "12",
    "a b",
    'a"b',
    "a\\b",
    "é",
    "🙂",
    "a\nb",
    "\t",
    "x.y",
    "]",
    "^",
    "A-Z",
]
PATTERNS = [
    "", "^$", "a", "^a", "b$", "^a|b$", "^(a|bc?)+$", "^[^a]*$", "^[^\\]a-]+$", "^a.b$", "^\\w+$", "^\\S+$", "\\s",
    "^\\D*$", '"', "\\\\", "^a{2}b", "^(?:a|b){1,2}c?$", "^(?<name>a)?b*?$", "^[\\d\\-_a]+$", "^\\x61\\u0062$",
    "^\\u{1F642}$", "\\.", "]", "^[$^]$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_finds_what_it_finds_elsewhere(weights: Weights, pattern: str) -> None:
    mask = mask_of(weights, json_schema_to_grammar(json.dumps({"pattern": pattern})))
    python = re.compile(pattern.replace("?<name>", "?P<name>").replace("\\u{1F642}", "\\U0001F642"), re.ASCII)
    found = [text for text in TEXTS if follows(mask, json.dumps(text, ensure_ascii=False))]
    assert found == [text for text in TEXTS if re.search(python, text)]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?=a)", "(?=, which looks around"),
        ("(?<!a)", "(?<, which looks around"),
        ("a^b", "^ in the middle"),
        ("(a$)", "$ in the middle"),
        ("*a", "nothing before *"),
        ("a{x}", "nothing before {"),
        ("\\bword\\b", "\\b"),
        ("(a)\\1", "\\1"),
        ("\\p{L}", "\\p"),
        ("\\", "\\"),
        ("(a", "does not end"),
        ("a)", "nothing opened"),
        ("[a", "does not end"),
        ("[z-a]", "backwards"),
        ("a{3,2}", "at least 3 and at most 2"),
        ("\\x01", "no short escape"),
    ],
)
def test_a_pattern_that_a_grammar_cannot_follow_says_why(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        pattern_rule(pattern)
    with pytest.raises(UsageError) as caught:
        json_schema_to_grammar(json.dumps({"properties": {"a": {"pattern": pattern}}}))
    assert "#/properties/a" in caught.value.message


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('{"a": 1,}', "is not JSON: Expecting property name enclosed in double quotes at line 1, column 9"),
        ('{"minimum": NaN}', "is not JSON: NaN is no number of JSON"),
        ('{"type": "str"}', 'has the type "str", at #'),
        ('{"type": 5}', "has the type 5, at #"),
        ('{"properties": {"a": {"not": {}}}}', "uses not, which a grammar cannot enforce, at #/properties/a"),
        ('{"type": "array", "uniqueItems": true}', "uses uniqueItems"),
        ('{"type": "number", "maximum": 3}', "bounds numbers by maximum"),
        ('{"type": "integer", "minimum": 0.5}', "bounds an integer by what is none"),
        ('{"type": "integer", "minimum": 1e999}', "bounds an integer by what is none"),
        ('{"type": "integer", "minimum": 3, "maximum": 2}', "allows no integer"),
        ('{"minLength": 3, "maxLength": 2}', "has minLength 3 and maxLength 2"),
        ('{"maxLength": 5000}', "counts length up to 5000"),
        ('{"pattern": "a", "maxLength": 2}', "bounds the length of a pattern"),
        ('{"prefixItems": [true], "minItems": 2}', "wants 2 items and describes 1"),
        ('{"required": ["a"], "additionalProperties": false}', 'requires "a", which cannot be there'),
        ('{"required": "a"}', 'has required "a"'),
        ('{"enum": []}', "has an empty enum"),
        ('{"anyOf": []}', "has an empty anyOf"),
        ('{"anyOf": 3}', "has anyOf 3"),
        ('{"enum": ["a"], "type": "integer"}', "has another type beside enum"),
        ('{"const": "a", "minLength": 2}', "has minLength beside const"),
        ('{"properties": {"a": 1}}', "is neither an object nor true or false, at #/properties/a"),
        ('{"items": {"anyOf": [false]}}', "allows nothing, at #/items/anyOf/0"),
        ('{"$ref": "https://example.com/schema.json"}', "refers to https://example.com/schema.json, at #"),
        ('{"$ref": "other.json#/a"}', "refers to other.json#/a, at #"),
        ('{"$ref": "#name"}', "refers to #name, at #"),
        ('{"$ref": "#/$defs/a"}', "refers to #/$defs/a, which is not there"),
        ('{"$ref": "#/a/7", "a": []}', "refers to #/a/7, which is not there"),
        ('{"allOf": [{"type": "string"}, {"type": "null"}]}', "combines two different type"),
        ('{"allOf": [{"properties": {"a": {}}}, {"properties": {"a": {"type": "null"}}}]}', "two different properties"),
        (
            '{"allOf": [{"properties": {"a": {}}, "additionalProperties": false}, {"properties": {"b": {}}}]}',
            "combines",
        ),
        ('{"allOf": [{"not": {}}, {"type": "null"}]}', "uses not"),
        ('{"allOf": [false, true]}', "combines what is no schema"),
        ('{"allOf": [{"$ref": "#"}, true]}', "combines itself with itself"),
        ("[" * 100000, "cannot be read"),
        ('{"a":' * 100000, "nested too deeply"),
    ],
)
def test_a_schema_that_cannot_be_followed_is_told_in_one_line(schema: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        json_schema_to_grammar(schema)
    assert reason in caught.value.message
    assert len(caught.value.message.splitlines()) == 1
    assert caught.value.hint
    assert caught.value.exit_code == EXIT_USAGE


def test_a_schema_that_begins_with_itself_is_refused_before_the_engine_sees_it(weights: Weights) -> None:
    with pytest.raises(UsageError, match="left-recursive"):
        mask_of(weights, json_schema_to_grammar('{"anyOf": [{"$ref": "#"}, {"type": "null"}]}'))


def test_a_schema_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    broken, latin, listed = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"
    broken.write_text('{\n  "type": \n}')
    latin.write_bytes(b'{"const": "\xe9"}')
    listed.write_text("[]")
    reasons = {
        broken: "a.json is not JSON: Expecting value at line 3, column 1",
        latin: "b.json is not UTF-8: invalid continuation byte at byte 11",
        listed: "c.json is neither an object nor true or false, at #",
        tmp_path / "none.json": "none.json cannot be read: No such file",
        tmp_path: "cannot be read: Is a directory",
        Path("a\0b"): "cannot be read: its name holds a zero byte",
    }
    for path, reason in reasons.items():
        with pytest.raises(UsageError) as caught:
            json_schema_to_grammar(str(path))
        assert reason in caught.value.message
        assert len(caught.value.message.splitlines()) == 1
