"""What a trace comes to: rates by position, lengths, time, and what was expected."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.core.draft_length import Outlook
from specdec_cli.errors import UsageError
from specdec_cli.traces.choosing import choose
from specdec_cli.traces.figures import to_json, to_text
from specdec_cli.traces.summary import Summary, summarise
from specdec_cli.traces.trace import End, Header, TracedRound
from tests.traces.made import END, drafted, header, kept_two_of_three, round_

RECORDS: list[Header | TracedRound | End] = [
    header(),
    kept_two_of_three(),
    round_(1, drafted("a", "rejected"), drafted("b", "unexamined")),
    round_(2, drafted("a", "accepted"), drafted("b", "cut"), own=None),
    round_(3),
    END,
    header(rule="coupled", costs=None),
    round_(0, drafted("a", "accepted")),
]
PATH = Path("answer.trace")


@pytest.fixture
def summary() -> Summary:
    return summarise(RECORDS)


def test_tokens_are_counted_by_position_while_all_before_them_were_kept(summary: Summary) -> None:
    found = [(each.drafted, each.examined, each.accepted) for each in summary.positions]
    assert found == [(4, 4, 3), (2, 1, 1), (1, 1, 0)]
    assert [each.alpha for each in summary.positions] == [0.75, 1.0, 0.0]
    assert [each.expected_alpha for each in summary.positions] == [0.75] * 3


def test_rounds_are_counted_by_how_much_they_drafted(summary: Summary) -> None:
    assert dict(summary.lengths) == {3: 1, 2: 1, 1: 2, 0: 1}


def test_what_was_cut_counts_as_not_drafted(summary: Summary) -> None:
    assert (summary.counters.drafted, summary.counters.examined, summary.counters.accepted) == (7, 6, 4)


def test_answers_are_counted_with_who_gave_them(summary: Summary) -> None:
    assert (summary.answers, summary.finished, summary.counters.rounds) == (2, 1, 5)
    assert [pair.rule for pair in summary.pairs] == ["token", "coupled"]


def test_the_costs_are_the_latest_that_were_known(summary: Summary) -> None:
    assert summary.costs == header().costs
    assert summarise([header(costs=None)]).costs is None


def test_expectations_stand_beside_what_came() -> None:
    rounds = [replace(kept_two_of_three(), index=at, outlook=Outlook((0.5,), 2.0 + at, 1.5, 1.0)) for at in (0, 1)]
    expected = summarise([header(), *rounds]).expected["model"]
    assert (expected.rounds, expected.expected, expected.emitted) == (2, 5.0, 6)


def test_the_text_says_it_in_80_columns(summary: Summary) -> None:
    text = to_text(summary)
    assert max(map(len, text.splitlines())) <= 80
    assert "answers  2 (1 not finished), 8 tokens in 5 rounds" in text
    assert "α 0.67 (Σ min(p, q) 0.75): 4 of 6 examined tokens kept" in text
    assert "auto expected 2.80 tokens a round of model, and 3.00 came (1 round)" in text
    assert "v(n)  1: 1.00  2: 1.50  3: 2.00  4: 2.50" in text
    assert "c     0.200 (model)" in text


def test_an_answer_without_a_draft_has_no_acceptance() -> None:
    summary = summarise([header(draft=None, draft_tokens=0, costs=None), round_(0), END])
    assert "α" not in to_text(summary)
    assert json.loads(to_json(summary))["alpha"] is None


def test_an_answer_without_rounds_divides_by_nothing() -> None:
    summary = summarise([header()])
    assert "0 tokens in 0 rounds" in to_text(summary)
    assert json.loads(to_json(summary))["tokens_per_round"] is None


def test_the_json_has_the_same_figures(summary: Summary) -> None:
    found: dict[str, Any] = json.loads(to_json(summary))
    assert found["version"] == 1
    assert found["kinds"] == {"accepted": 4, "correction": 2, "bonus": 2}
    assert found["positions"][0]["alpha"] == 0.75
    assert found["lengths"] == {"0": 1, "1": 2, "2": 1, "3": 1}
    assert found["drafters"] == {"model": {"drafted": 7, "accepted": 4}}
    assert found["costs"]["target"] == [0.02, 0.03, 0.04, 0.05]
    assert found["seconds"]["verify"] == pytest.approx(0.4)


def test_the_json_holds_nothing_that_a_terminal_obeys() -> None:
    text = to_json(summarise([header(target="\x9b2J\x7f\u2028"), replace(round_(0), drafter="\x1b[2J")]))
    assert json.loads(text)["pairs"][0]["target"] == "\x9b2J\x7f\u2028"
    assert [character for character in text if not character.isprintable()] == ["\n"]


def chosen(answer: int | None, index: int | None) -> list[Header | TracedRound | End]:
    return list(choose(iter(RECORDS), PATH, answer, index))


def test_one_answer_can_be_chosen_and_one_round() -> None:
    assert chosen(None, None) == RECORDS
    assert chosen(1, None) == RECORDS[:6]
    assert chosen(2, None) == RECORDS[6:]
    assert chosen(1, 2) == [RECORDS[0], RECORDS[3]]
    assert chosen(None, 0) == [RECORDS[0], RECORDS[1], *RECORDS[6:]]


@pytest.mark.parametrize(("answer", "index", "reason"), [(3, None, "no answer 3"), (2, 1, "no round 1 in answer 2")])
def test_what_is_not_there_cannot_be_chosen(answer: int, index: int | None, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        chosen(answer, index)


def test_damage_behind_the_chosen_answer_does_not_matter() -> None:
    def records() -> Any:
        yield from RECORDS[:7]
        raise AssertionError("read on")

    assert list(choose(records(), PATH, 1, None)) == RECORDS[:6]
