from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specdec_cli.errors import EXIT_USAGE, UsageError
from specdec_cli.llama import grammar
from specdec_cli.llama.grammar import ANYTHING, load_grammar, read_grammar
from specdec_cli.llama.library import llama
from specdec_cli.llama.weights import Weights
from tests.engine import loaded
from tests.llama.following import allows, follows, mask_of
from tests.toy_gguf import BOS, EOS, FIRST_EXTRA, TURN_END, attention_toy

REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
EXTRA = (b"ab", b"a\xc3", b"\xa9b", b"\xc3\xa9", b"\xc3\xa9\xc3\xa9b", REPLACEMENT, b"\xc3\xa8", b" a", b" ab", b"\0a")
SIZE = FIRST_EXTRA + len(EXTRA)
EVERY = np.arange(SIZE)
JSON = """root ::= object
object ::= "{" ws (pair ("," ws pair)*)? "}"
pair ::= string ":" ws (string | number | object)
string ::= "\\"" [^"\\\\\\x00-\\x1f]* "\\""
number ::= "-"? [0-9]+
ws ::= [ \\n]*
"""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weights]:
    path = attention_toy(extra=EXTRA).write(tmp_path_factory.mktemp("grammar") / "model.gguf")
    with loaded(path) as weights:
        yield weights


@pytest.mark.parametrize("text", ["{}", '{"a": 1}', '{"é🙂":{"b":"c", "d":-20}}', '{\n "a": {}}'])
def test_what_the_grammar_describes_can_be_said(weights: Weights, text: str) -> None:
    assert follows(mask_of(weights, JSON), text)


@pytest.mark.parametrize("text", ["", "{", "{}}", "[]", '{"a" 1}', '{"a": -}', '{"\n": 1}', '{"a": 1,}'])
def test_nothing_else_can(weights: Weights, text: str) -> None:
    assert not follows(mask_of(weights, JSON), text)


def test_a_mask_never_changes(weights: Weights) -> None:
    start = mask_of(weights, 'root ::= "ab" | "ac"')
    after_a = start.after(ord("a"))
    for token in b"bcx":
        after_a.after(token)
        start.after(token)
    assert allows(start, *b"abc") == [True, False, False]
    assert allows(after_a, *b"abc") == [False, True, True]


def test_a_token_of_several_characters_is_followed_through(weights: Weights) -> None:
    mask = mask_of(weights, 'root ::= "a" "b" "b"')
    assert allows(mask, FIRST_EXTRA) == [True]
    assert follows(mask.after(FIRST_EXTRA), "b")
    assert allows(mask_of(weights, 'root ::= "ac"'), FIRST_EXTRA) == [False]


def test_an_answer_may_end_only_where_the_grammar_does(weights: Weights) -> None:
    mask = mask_of(weights, 'root ::= "a" "b"?')
    assert allows(mask, EOS, TURN_END) == [False, False]
    assert allows(mask.after(ord("a")), EOS, TURN_END) == [True, True]


@pytest.mark.parametrize("token", [EOS, TURN_END])
def test_after_the_end_anything_goes(weights: Weights, token: int) -> None:
    after = mask_of(weights, 'root ::= "a"?').after(token)
    assert after.allowed(EVERY).all()
    assert after.after(5) is after


@pytest.mark.parametrize("token", [ord("b"), EOS, BOS, 0, SIZE, 10**6])
def test_after_a_token_that_could_not_come_anything_goes(weights: Weights, token: int) -> None:
    assert mask_of(weights, 'root ::= "a"').after(token) is ANYTHING


def test_ids_beyond_the_vocabulary_never_come(weights: Weights) -> None:
    mask = mask_of(weights, "root ::= [^x]*")
    assert allows(mask, SIZE, ord("a"), SIZE + 1, 10**9) == [False, True, False, False]
    assert mask.allowed(np.array([], np.intp)).shape == (0,)


def test_a_character_may_come_in_parts(weights: Weights) -> None:
    mask = mask_of(weights, 'root ::= "é"?')
    assert allows(mask, 0xC3, 0xC4, 0xA9, EOS) == [True, False, False, True]
    half = mask.after(0xC3)
    assert np.flatnonzero(half.allowed(EVERY)).tolist() == [0xA9], "not even the end, in the middle of a character"
    assert np.flatnonzero(half.after(0xA9).allowed(EVERY)).tolist() == [EOS, TURN_END]


def test_a_token_may_end_or_begin_inside_a_character(weights: Weights) -> None:
    mask = mask_of(weights, 'root ::= "aéb"')
    assert allows(mask, FIRST_EXTRA + 1) == [True]
    assert allows(mask.after(FIRST_EXTRA + 1), FIRST_EXTRA + 2) == [True]
    assert allows(mask.after(FIRST_EXTRA + 1).after(FIRST_EXTRA + 2), EOS) == [True]


def test_control_tokens_come_where_their_text_does_and_zero_bytes_nowhere(weights: Weights) -> None:
    assert allows(mask_of(weights, "root ::= .*"), BOS, EOS, 0, FIRST_EXTRA + EXTRA.index(b"\0a")) == [1, 1, 0, 0]
    assert allows(mask_of(weights, "root ::= [a-z]+"), BOS, ord("a")) == [False, True]


GRAMMARS = (JSON, "root ::= [^é]*", 'root ::= [^\ufffd]+ "é"', 'root ::= (" "? "a" | "éé" "b"? | "\ufffd")*')


@pytest.mark.parametrize("text", GRAMMARS)
def test_asking_for_all_tokens_gives_the_same_as_asking_for_each(
    weights: Weights, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(3)
    by_one, at_once = mask_of(weights, text), mask_of(weights, text)
    for _ in range(40):
        each = [bool(by_one.allowed(EVERY[[token]])[0]) for token in EVERY]
        with monkeypatch.context() as many:
            many.setattr(grammar, "MANY", 0)
            assert at_once.allowed(EVERY).tolist() == each
        going_on = [token for token in np.flatnonzero(each) if token not in (EOS, TURN_END)]
        if not going_on:
            break
        token = int(generator.choice(going_on))
        by_one, at_once = by_one.after(token), at_once.after(token)


def test_what_was_asked_before_is_not_asked_again(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = mask_of(weights, JSON).after(ord("{"))
    engine, asked = llama().llama_sampler_apply, []

    def apply(sampler: Any, array: Any) -> None:
        asked.append(array._obj.size)
        engine(sampler, array)

    monkeypatch.setattr(llama(), "llama_sampler_apply", apply)
    first = mask.allowed(EVERY[30:60])
    assert (mask.allowed(EVERY[50:70])[:10] == first[20:]).all()
    mask.allowed(EVERY[40:65])
    assert asked == [30, 10]


def test_every_state_is_freed_exactly_once(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: Counter[int] = Counter()
    engine = llama().llama_sampler_free
    monkeypatch.setattr(llama(), "llama_sampler_free", lambda sampler: (freed.update([id(sampler)]), engine(sampler)))
    states = [mask_of(weights, 'root ::= "a"*')]
    for _ in range(3000):
        states.append(states[-1].after(ord("a")))
    assert not freed
    states.clear()
    gc.collect()
    assert freed.total() == 3001


def test_a_state_may_outlive_the_weights(tmp_path: Path) -> None:
    with loaded(attention_toy().write(tmp_path / "model.gguf")) as weights:
        states = [mask_of(weights, 'root ::= "a"*')]
        states.append(states[0].after(ord("a")))
    states.clear()
    gc.collect()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        (" \n# only this\n", "failed to parse grammar"),
        ('start ::= "a"', "does not contain a 'root' symbol"),
        ("root ::= missing", "Undefined rule identifier 'missing'"),
        ('root ::= "a" |\n  "b" )\n', "expecting newline or end at line 2, column 7, near )"),
        ('root ::= "é" [\\q]', "unknown escape at line 1, column 15, near \\q]"),
        ('root = "a"', "expecting ::= at line 1, column 6, near = "),
        ("root", "expecting ::= at line 1, column 5, where it ends"),
        ('root ::= "a', "unexpected end of input"),
        ('root ::= ("a"', "expecting ')' at line 1, column 14, where it ends"),
        ('root ::= "a"{5000}', "number of repetitions exceeds"),
        ('root ::= "a"{99999999999999999999999}', "a number in it is too large"),
        ('root ::= root "a" | "b"', "rule root can begin with itself"),
        ('root ::= "\\x00"', "allows no token"),
    ],
)
def test_a_grammar_that_cannot_be_used_is_told_in_one_line(
    weights: Weights, text: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        load_grammar(weights, text, name="grammar x.gbnf")
    assert reason in caught.value.message
    assert caught.value.message.startswith("grammar x.gbnf ")
    assert len(caught.value.message.splitlines()) == 1
    assert caught.value.hint
    assert caught.value.exit_code == EXIT_USAGE
    assert capfd.readouterr().err == "", "the parser prints, and only the message may be seen"


def test_a_closed_standard_error_is_no_reason_to_fail(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: int) -> int:
        raise OSError

    monkeypatch.setattr("os.dup", closed)
    assert follows(mask_of(weights, 'root ::= "a"'), "a")


def test_a_grammar_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.gbnf"
    path.write_bytes(b'\xef\xbb\xbfroot ::= "\xc3\xa9"\n')
    assert read_grammar(path) == 'root ::= "é"\n'


def test_a_grammar_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    latin = tmp_path / "latin.gbnf"
    latin.write_bytes(b'root ::= "\xe9"')
    reasons = {
        latin: "is not UTF-8: invalid continuation byte at byte 10",
        tmp_path / "none.gbnf": "cannot be read: No such file",
        tmp_path: "cannot be read: Is a directory",
        Path("a\0b"): "cannot be read: its name holds a zero byte",
    }
    for path, reason in reasons.items():
        with pytest.raises(UsageError) as caught:
            read_grammar(path)
        assert reason in caught.value.message
