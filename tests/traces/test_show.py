"""Rounds as a person reads them: what decided, in 80 columns, and nothing that a terminal would obey."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from specdec_cli.catalog import Pair
from specdec_cli.core.verify import RULES
from specdec_cli.traces.reading import read_records
from specdec_cli.traces.show import Frame, to_blocks
from specdec_cli.traces.trace import End, Header, TracedRound
from tests.traces.made import END, drafted, header, kept_two_of_three, round_, token
from tests.traces.traced import traced

NARROW = Frame(80, colors=False)


def shown(*records: Header | TracedRound | End, frame: Frame = NARROW) -> str:
    return "".join(to_blocks(records, frame))


def widths(blocks: Iterable[str]) -> set[int]:
    return {cell_len(line) for block in blocks for line in block.splitlines()}


def test_a_round_is_a_block_of_lines() -> None:
    assert (
        shown(header(), kept_two_of_three(), END)
        == """\
target big.gguf on CPU · draft small.gguf on CPU · token rule · seed 7
  draft-tokens 3 · 41 tokens of prompt · temperature 0.8 · top-k 40

round 0 · place 41 · model drafted 3, kept 2 · draft 10, verify 80, sample 2 ms
  expected 2.80 tokens for 1.90 plain steps
  accepted   " the"        p 0.400  q 0.200  p/q 2      Σmin 0.75  certain
  accepted   " cat"        p 0.400  q 0.200  p/q 2      Σmin 0.75  0.310 < 0.900
  rejected   " sat"        p 0.400  q 0.200  p/q 2      Σmin 0.75  0.750 ≥ 0.200
  correction "dog"         residual 0.500  at 0.250: "dog" 0.500 · "cat" 0.250

ended: stop

"""
    )


def test_a_plain_round_has_one_line() -> None:
    plain = shown(header(draft_tokens=0, draft=None), round_(0)).splitlines()
    assert "plain decoding" in plain[0]
    assert plain[3:] == [
        "round 0 · place 41 · nothing drafted · draft 10, verify 80, sample 2 ms",
        '  bonus      "dog"         p 0.500  at 0.250: "dog" 0.500 · "cat" 0.250',
        "",
    ]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("token", ["with the next", "impossible", ""]),
        ("block", ["with the next", "impossible", ""]),
        ("coupled", ["the same draw", "another draw", ""]),
    ],
)
def test_where_no_number_decided_words_say_why(rule: str, words: list[str]) -> None:
    drafts = (drafted("a", "accepted"), drafted("b", "rejected"), drafted("c", "unexamined"))
    lines = shown(header(rule=rule), round_(0, *drafts)).splitlines()
    found = [line.partition("Σmin 0.75")[2].strip() for line in lines if line.startswith(("  acc", "  rej", "  unex"))]
    assert found == words


def test_a_correction_of_the_coupled_rule_comes_from_p() -> None:
    assert "correction" in (text := shown(header(rule="coupled"), round_(0, drafted("b", "rejected"))))
    assert "residual" not in text


def test_an_end_shows_what_it_was_drawn_from() -> None:
    ended = replace(round_(0, own=None), last=round_(0, own="<|end|>").last)
    assert '  the end    p  at 0.250: "<|end|>" 0.500' in shown(header(), ended)


def test_a_label_tells_answers_apart() -> None:
    assert "prompt code, repeat 1" in shown(header(label={"prompt": "code", "repeat": 1}))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("columns", [80, 100, 120])
def test_no_line_is_wider_than_the_window(attention_pair: Pair, tmp_path: Path, columns: int, rule: str) -> None:
    traced(attention_pair, tmp_path / "trace", max_tokens=40, rule=rule)
    blocks = to_blocks(read_records(tmp_path / "trace", print), Frame(columns, colors=False))
    assert not [line for block in blocks for line in block.splitlines() if cell_len(line) > columns]


HOSTILE = "\x1b]0;title\x07\x9b2J\r\n\t\u202e\u2028\u200d[bold]:smile:</script>\ud800東京"


def test_nothing_of_a_trace_reaches_the_terminal_but_text() -> None:
    hostile = replace(drafted("x", "rejected"), token=token("x", HOSTILE.encode("utf-8", "replace")))
    round_of_it = replace(round_(0, hostile, own=HOSTILE), drafter=HOSTILE)
    text = shown(
        header(target=HOSTILE, draft=HOSTILE, rule=HOSTILE, label={HOSTILE: HOSTILE}, sampling={"top_k": HOSTILE}),
        round_of_it,
        End(HOSTILE, {}),
        frame=Frame(400, colors=False),
    )
    assert {character for character in text if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl")} == {"\n"}
    assert "[bold]:smile:</script>" in text
    assert "東京" in text


def test_a_token_that_is_no_text_shows_its_bytes() -> None:
    part = replace(drafted("x", "rejected"), token=token("�", b"\xe2\x82"))
    assert '"\\xe2\\x82"' in shown(header(), round_(0, part))


def test_an_endless_token_is_one_line() -> None:
    long = replace(drafted("x", "rejected"), token=token("x" * 10_000_000))
    assert max(widths([shown(header(), round_(0, long, own="y" * 10_000_000))])) <= 80


def test_colours_are_there_only_where_they_are_wanted() -> None:
    assert "\x1b" not in shown(header(), kept_two_of_three())
    assert "\x1b[32m" in shown(header(), kept_two_of_three(), frame=Frame(80, colors=True))
