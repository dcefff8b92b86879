"""The one sentence that a bench comes to."""

from __future__ import annotations

from specdec_cli.bench.verdict import to_verdict
from specdec_cli.core.costs import Costs
from tests.bench.answers import plain_rounds, report, round_of, sample, three_ways

DEAR = Costs((1.0, 2.1, 3.2, 4.3), {"model": (0.1,)})
"""Checking two tokens takes longer than two plain steps."""
SLOW_DRAFT = Costs((1.0, 1.0, 1.0, 1.0), {"model": (0.9,)})


def test_where_it_pays_auto_and_the_best_fixed_length_are_named() -> None:
    assert to_verdict(report(three_ways("code", (1.28, 1.31)))) == (
        "auto is 1.31 × plain decoding here; the best fixed length is 2 with 1.28 ×"
    )


def test_the_kinds_that_gain_the_least_and_the_most_are_named() -> None:
    samples = three_ways("code", (1.5, 2.0)) + three_ways("prose", (1.1, 1.2)) + three_ways("edit", (1.2, 1.4))
    verdict = to_verdict(report(samples))
    assert ", 1.20 × on prose to 2.00 × on code; the best fixed length is 2 with " in verdict


def test_a_loss_is_told_with_its_reason() -> None:
    samples = three_ways("code", (0.8, 0.9))
    assert to_verdict(report(samples, costs=DEAR)) == (
        "do not speculate here: auto is 0.90 × plain decoding and the best fixed length, 2, is 0.80 ×, "
        "since checking 2 tokens takes 2.1 plain steps"
    )
    assert to_verdict(report(samples, costs=SLOW_DRAFT)).endswith("since a drafted token takes 0.90 of a plain step")


def test_an_auto_that_drafted_nothing_is_no_gain() -> None:
    samples = [*three_ways("code", (0.8, 1.0))[:2], sample("code", "auto", plain_rounds(20), 1.96)]
    verdict = to_verdict(report(samples, costs=DEAR))
    assert verdict.startswith("do not speculate here: auto is 1.02 × plain decoding and the best fixed length, 2, is")


def test_what_is_within_the_noise_is_no_difference() -> None:
    samples = [
        each for turn, auto in enumerate([0.9, 1.05, 1.2]) for each in three_ways("code", (0.7, auto), turn=turn)
    ]
    assert to_verdict(report(samples)).startswith("speculation makes no clear difference here: auto is 1.05 × plain")


def test_each_temperature_has_its_part() -> None:
    samples = three_ways("code", (1.2, 1.3)) + three_ways("code", (0.8, 0.9), temperature=1.0)
    first, *_, last = to_verdict(report(samples)).split("; ")
    assert first == "at temperature 0 auto is 1.30 × plain decoding here"
    assert last.startswith("at temperature 1 do not speculate here: auto is 0.90 × plain decoding")


def test_without_auto_the_best_length_is_named_alone() -> None:
    samples = [*three_ways("code", (1.2, 1))[:2], sample("code", 4, [round_of(4, 4)] * 4, 1.0)]
    assert to_verdict(report(samples)) == "the best fixed length, 4, is 2.00 × plain decoding here"


def test_without_a_plain_answer_there_is_nothing_to_say() -> None:
    assert to_verdict(report(three_ways("code", (1, 1))[1:])) == "nothing could be compared"


def test_a_fixed_length_that_gains_where_auto_does_not_is_named_first() -> None:
    assert to_verdict(report(three_ways("code", (1.5, 0.95)))) == (
        "the best fixed length, 2, is 1.50 × plain decoding here; auto is 0.95 ×"
    )
