"""The table and the words below it: in 80 columns, in a wide window and in a pipe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdec_cli.bench.measuring import Measurement, Stop
from specdec_cli.bench.report import Report
from specdec_cli.bench.table import to_table
from specdec_cli.bench.words import to_words
from tests.bench.answers import plain_rounds, report, sample, three_ways


def both_kinds() -> Report:
    return report(three_ways("code", (1.5, 2.0)) + three_ways("prose", (0.9, 1.0)))


def test_a_window_of_80_columns_gets_a_block_for_each_kind() -> None:
    table, words = to_table(both_kinds(), 80), to_words(both_kinds(), 80)
    assert max(map(len, (table + words).splitlines())) <= 80
    assert [line for line in table.splitlines() if "temperature" in line] == [
        "code, temperature 0",
        "prose, temperature 0",
        "all, temperature 0",
    ]
    assert table.count("× plain") == 3
    plain, fixed, auto = table.splitlines()[2:5]
    assert plain.split() == ["plain", "10.0", "0/100/0"]
    assert fixed.split()[:6] == ["2", "15.0", "1.50", "1.50–1.50", "1.21", "1.63"]
    assert auto.split()[0] == "auto"


@pytest.mark.parametrize("width", [None, 140, 118])
def test_a_wide_window_and_a_pipe_get_a_line_for_each_cell(width: int | None) -> None:
    whole = to_table(both_kinds(), width).splitlines()
    lines = [line for line in whole if line]
    assert max(map(len, lines)) <= 118
    assert len(lines) == 1 + 9
    assert len(whole) == len(lines) + (0 if width is None else 2), "a gap between kinds, for eyes alone"
    assert lines[0].split()[:4] == ["prompts", "T", "γ", "tok/s"]
    assert [line.split()[:3] for line in lines[4:7]] == [["prose", "0", each] for each in ("plain", "2", "auto")]


def test_names_that_a_terminal_would_obey_are_shown() -> None:
    table = to_table(report(three_ways("\x1b[31mred", (1, 1))), 80)
    assert "␛[31mred, temperature 0" in table
    assert "\x1b" not in table


def test_a_name_of_wide_characters_keeps_the_columns_in_line() -> None:
    lines = to_table(report(three_ways("散文", (1, 1)) + three_ways("code", (1, 1))), None).splitlines()
    assert lines[1].startswith("   散文  0  plain")
    assert lines[4].startswith("   code  0  plain")


def test_the_words_name_costs_memory_machine_and_pair() -> None:
    words = to_words(both_kinds(), None)
    assert "costs    c 0.10 (model); v(2) 1.20, v(3) 1.40, v(4) 1.60" in words
    assert "memory   3.0 GB at most; weights 2.2 GB, caches 100 MB" in words
    assert "pair     target big.gguf on CPU, draft small.gguf on CPU" in words
    assert "machine  A CPU, 2 cores usable, Linux 6 x86_64, llama-cpp-python 0.3.36" in words
    assert "answers  up to 64 tokens, rule block, seeds from 5, 2 threads and 1 for the draft" in words
    assert "missing" not in words
    assert "noise" not in words


@pytest.mark.parametrize(
    ("stopped", "why"),
    [
        ("time limit", "after the 300 s of --time-limit (0: none)"),
        ("interrupted", "interrupted"),
        ("error", "it could"),
    ],
)
def test_what_is_missing_is_said(stopped: Stop, why: str) -> None:
    whole = both_kinds()
    cut = replace(whole, measurement=Measurement(whole.measurement.samples, 20, stopped))
    assert f"missing  14 of 20 answers: {why}" in to_words(cut, None)


def test_a_busy_machine_is_told_by_its_plain_answers() -> None:
    samples = [sample("code", 0, plain_rounds(20), seconds, turn=turn) for turn, seconds in enumerate((2.0, 3.0))]
    words = to_words(report([*samples, *three_ways("code", (1.5, 2.0), turn=2)]), None)
    assert "noise    plain answers ran at 6.7 to 10.0 tok/s" in words
