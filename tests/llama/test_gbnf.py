from __future__ import annotations

import pytest

from specdec_cli.errors import UsageError
from specdec_cli.llama.gbnf import DEEPEST, check_grammar

SURVIVED = [
    'root ::= "a" root | "b"',
    'root ::= ws "a" # root ::= root\nws ::= [ \\t]*',
    'root ::= "root ::= root" [root] "\\"" item+\nitem ::= ([^"\\]\\\\] | "x"{2,}){0,3} ","',
    'root ::= (a | b)*\na ::= "a"?\nb ::=\n  "b"\n  | ""\n',
    "root ::= expr\nexpr ::= term ([-+] term)*\nterm ::= [0-9]+ | " + '"(" expr ")"',
    'root ::= "a"{2,2}  "b"{3} "c"{0} .\r\n',
]


@pytest.mark.parametrize("text", SURVIVED)
def test_a_sound_grammar_passes(text: str) -> None:
    check_grammar(text, "grammar")


@pytest.mark.parametrize("text", ['root ::= "a" }', "root ::= )", "| root", 'root ::= * "a"', "root ::= 'a'", '"'])
def test_what_does_not_parse_is_left_to_the_parser(text: str) -> None:
    check_grammar(text, "grammar")


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        ('root ::= root "a" | "b"', ""),
        ('root ::= "b" | (root "a")', ""),
        ('root ::= a\na ::= b "x"\nb ::= a | "y"', "a > b > a"),
        ('root ::= expr\nexpr ::= ws expr "+" | "x"\nws ::= [ ]*', ""),
        ('root ::= expr\nexpr ::= ws ("y"{0,2}) expr "+" | "x"\nws ::= blank\nblank ::= [ ] | ', ""),
        ('root ::= nothing root\nnothing ::= none\nnone ::= ""', ""),
    ],
)
def test_left_recursion_is_found_also_behind_what_may_be_empty(text: str, chain: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_grammar(text, "grammar")
    assert "is left-recursive: rule " in caught.value.message
    rules = caught.value.message.rpartition(" through ")[2].split(" > ")
    assert sorted(set(rules)) == sorted(set(chain.split(" > "))) or not chain


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ('root ::= "\0"', "zero byte"),
        ('root ::= "\ud800"', "half of a surrogate pair"),
        ('root ::= a\na ::= "a"{5,2}', "at least 5 and at most 2 times in rule a"),
        ("root ::= " + "(" * (DEEPEST + 1) + '"a"' + ")" * (DEEPEST + 1), "deep"),
        ("root ::= <think>", "token element in rule root"),
        ('root ::= "a" !<[5]>*', "token element in rule root"),
    ],
)
def test_what_would_end_the_process_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_grammar(text, "grammar x.gbnf")
    assert reason in caught.value.message
    assert caught.value.message.startswith("grammar x.gbnf ")
    assert caught.value.hint
