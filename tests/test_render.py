"""What people and programs read about an answer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest

from specdec_cli.core.logprobs import Logprob, TokenLogprobs
from specdec_cli.core.stats import Counters, Timing
from specdec_cli.render import to_bars, to_logprobs, to_short_summary, to_stats, to_status, to_summary

SOME = Counters(
    rounds=10,
    drafted=40,
    accepted=22,
    corrections=7,
    bonus=3,
    examined=29,
    overlap=20.3,
    drafted_at=[10, 10, 10, 10],
    accepted_at=[9, 7, 4, 2],
)
TIMING = Timing(load=1.0, prompt=0.5, draft=0.4, verify=1.58, sample=0.02, total=3.6)
NO_OPTIONS: Mapping[str, Any] = {}
NOTHING = Timing(load=1.0, prompt=0.5, draft=0.0, verify=0.0, sample=0.0, total=1.5)


def summary(
    counters: Counters = SOME,
    timing: Timing = TIMING,
    reason: str = "stop",
    draft: str | None = "d",
    brought: Mapping[str, Any] = NO_OPTIONS,
) -> str:
    target = "t.gguf on CPU"
    return to_summary(counters, timing, reason=reason, seed=7, target=target, draft=draft, brought=brought).plain


def test_the_summary_shows_the_sampling_that_the_model_file_brings() -> None:
    brought = {"temperature": 0.6, "top_k": 20, "samplers": ("top_k", "temperature")}
    assert "its own sampling: temperature 0.6, top_k 20, samplers top_k;temperature" in summary(brought=brought)


def test_the_status_shows_the_issues_figures_and_fits_eighty_columns() -> None:
    line = " · ".join(to_status(SOME, TIMING, 4))
    assert line == "α 0.76 · 3.2 tok/round · γ 4 · 16.0 tok/s · draft/verify/sample 20/79/1 %"
    assert len(line) < 80 - len("100")


def test_the_status_without_a_draft_is_speed_and_count() -> None:
    assert to_status(SOME, TIMING, 0) == ["16.0 tok/s", "32 tokens"]


def test_the_summary_of_an_answer_with_a_draft() -> None:
    assert summary() == (
        "32 tokens · 16.0 tokens/s · accepted 22/40 (55 %) · α 0.76 (Σ min(p, q) 0.70) · 3.20 tokens/round"
        " · target t.gguf on CPU · draft d · seed 7"
    )


def test_the_summary_of_an_answer_without_a_draft_has_no_rates_of_one() -> None:
    assert summary(draft=None) == "32 tokens · 16.0 tokens/s · target t.gguf on CPU · draft none · seed 7"


@pytest.mark.parametrize(
    ("reason", "words"),
    [("length", "as many as were asked for"), ("context", "the context was full"), ("interrupted", "interrupted")],
)
def test_the_summary_says_why_an_answer_did_not_end_by_itself(reason: str, words: str) -> None:
    assert words in summary(reason=reason)
    assert words not in summary(reason="stop")


def test_nothing_counted_is_not_available_and_never_a_division_by_zero() -> None:
    assert " · ".join(to_status(Counters(), NOTHING, 4)) == (
        "α n/a · n/a tok/round · γ 4 · n/a tok/s · draft/verify/sample n/a/n/a/n/a %"
    )
    assert summary(Counters(), NOTHING).startswith("0 tokens · n/a tokens/s · accepted 0/0 · α n/a (Σ min(p, q) n/a)")
    stats = to_stats(Counters(), NOTHING)
    rates = ("alpha", "expected_alpha", "acceptance_rate", "tokens_per_round", "tokens_per_second")
    assert [stats[name] for name in rates] == [None] * 5
    assert stats["drafted_at"] == stats["accepted_at"] == []


def test_the_statistics_are_strict_json_of_the_counters() -> None:
    stats = json.loads(json.dumps(to_stats(SOME, TIMING), allow_nan=False))
    assert stats["seconds"] == {"load": 1.0, "prompt": 0.5, "draft": 0.4, "verify": 1.58, "sample": 0.02, "total": 3.6}
    assert stats["alpha"] == 22 / 29
    assert stats["expected_alpha"] == pytest.approx(0.7)
    assert stats["acceptance_rate"] == 22 / 40
    assert stats["tokens_per_round"] == 3.2
    assert stats["tokens_per_second"] == pytest.approx(16)
    assert (stats["drafted_at"], stats["accepted_at"]) == ([10, 10, 10, 10], [9, 7, 4, 2])


def test_log_probabilities_are_strict_json_with_null_for_the_impossible() -> None:
    texts = [b"a", b"\xe2\x82", b"", b"\n"]
    told = TokenLogprobs(Logprob(1, -0.5, -0.25), (Logprob(0, -1.5, -math.inf), Logprob(2, -math.inf, -math.inf)))
    (given,) = json.loads(json.dumps(to_logprobs([told], texts), allow_nan=False))
    best = given.pop("best")
    half = "\N{REPLACEMENT CHARACTER}"
    assert given == {"token": 1, "text": half, "bytes": [0xE2, 0x82], "logprob": -0.5, "chain_logprob": -0.25}
    assert best == [
        {"token": 0, "text": "a", "bytes": [97], "logprob": -1.5, "chain_logprob": None},
        {"token": 2, "text": "", "bytes": [], "logprob": None, "chain_logprob": None},
    ]
    assert to_logprobs([], texts) == []


def test_sampling_of_its_own_is_shown_only_where_there_is_some() -> None:
    assert "its own sampling" not in summary()
    assert "its own sampling: temperature 0, min_p 0.05 · seed" in summary(brought={"temperature": 0.0, "min_p": 0.05})


def test_bars_show_how_often_each_position_was_kept() -> None:
    assert to_bars(Counters(drafted_at=[4, 2], accepted_at=[3, 0])) == [
        f"position  1 {'━' * 18}{'╌' * 6}  75% of 4",
        f"position  2 {'╌' * 24}   0% of 2",
    ]
    assert to_bars(Counters()) == []


def test_a_short_summary_speaks_of_drafts_only_where_there_were_some() -> None:
    assert to_short_summary(Counters(bonus=1), Timing(), reason="stop") == "1 token · n/a tokens/s"
    drafted = Counters(accepted=1, bonus=1, drafted=2)
    assert to_short_summary(drafted, Timing(verify=1), reason="interrupted") == (
        "2 tokens, interrupted · 2.0 tokens/s · accepted 1/2 (50 %)"
    )
