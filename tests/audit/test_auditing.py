"""A whole audit: it passes on every kind of toy, repeats itself, and says what it found when it is stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from specdec_cli.audit.auditing import Audit, check_auditable
from specdec_cli.audit.report import to_json, to_words
from specdec_cli.catalog import Pair
from specdec_cli.errors import UsageError
from tests.audit.toy_audits import SHORT, audited, failed
from tests.llama.test_translated import shuffled
from tests.toy_gguf import attention_toy
from tests.toy_kinds import KINDS, kind_toy

NAMES = {"target": "big.gguf", "draft": "small.gguf"}


def test_fitting_and_bad_drafts_pass(attention_pair: Pair, bad_draft_pair: Pair) -> None:
    for pair in (attention_pair, bad_draft_pair):
        found = audited(pair)
        assert [each.name for each in found.outcomes] == ["greedy", "coupled", "caches", "sampling"]
        assert failed(found) == set()
        assert [each.figures.get("forks", []) for each in found.outcomes] == [[], [], [], []]


def test_lookup_passes_and_guesses_in_the_prompt_that_repeats_itself(attention_pair: Pair) -> None:
    found = audited(replace(attention_pair, draft="lookup"))
    assert failed(found) == set()
    assert found.outcomes[-1].figures["drafted"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_passes(kind: str, tmp_path: Path) -> None:
    target = kind_toy(kind, 3.0).write(tmp_path / "target.gguf")
    draft = kind_toy(kind, 2.0, seed=8).write(tmp_path / "draft.gguf")
    assert failed(audited(Pair(target, draft), replace(SHORT, prompts=1))) == set()


def test_different_vocabularies_pass(tmp_path: Path) -> None:
    target = attention_toy(3.0, extra=[b"th", b"he "]).write(tmp_path / "target.gguf")
    draft = shuffled(attention_toy(2.0), keep=259).write(tmp_path / "draft.gguf")
    found = audited(Pair(target, draft))
    assert failed(found) == set()
    assert found.outcomes[-1].figures["drafted"] > 0


def test_a_draft_that_never_guesses_is_not_praised(attention_pair: Pair, tmp_path: Path) -> None:
    outgrown = attention_toy(2.0).having({"llama.context_length": 8}).write(tmp_path / "draft.gguf")
    words = audited(replace(attention_pair, draft=outgrown)).outcomes[-1].words
    assert "the draft never guessed" in words


def test_a_seed_repeats_what_does_not_hang_on_the_speed_of_the_machine(attention_pair: Pair) -> None:
    first, again, other = (
        [each.figures for each in audited(attention_pair, seed=seed).outcomes[2:]] for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_the_clock_ends_each_check_after_one_piece_at_least(attention_pair: Pair) -> None:
    ticks = count(step=1000.0)
    found = audited(attention_pair, replace(SHORT, seconds=1.0), clock=lambda: next(ticks))
    figures = [each.figures for each in found.outcomes]
    assert [figures[0]["answers"], figures[1]["answers"], figures[2]["answers"]] == [1, 1, 1]
    assert figures[3]["samples"] == 10
    assert failed(found) == set()


def test_after_ctrl_c_there_is_what_was_found_until_then(attention_pair: Pair) -> None:
    def press(task: str, share: float) -> None:
        if "coupled" in task and share > 0:
            raise KeyboardInterrupt

    found = audited(attention_pair, tell=press)
    assert found.interrupted
    assert [each.name for each in found.outcomes] == ["greedy", "coupled"]
    assert found.outcomes[1].figures["answers"] == 1
    assert "interrupted" in to_words(found, **NAMES).splitlines()[-1]
    assert json.loads(to_json(found, **NAMES))["passed"] is False


def test_a_pair_without_a_draft_has_nothing_to_audit(attention_pair: Pair) -> None:
    with pytest.raises(UsageError, match="nothing to audit"):
        check_auditable(replace(attention_pair, draft="none"))


def test_the_report_is_a_line_a_check_with_the_verdict_last(attention_pair: Pair) -> None:
    lines = to_words(audited(attention_pair), **NAMES).splitlines()
    assert [line.split()[0] for line in lines] == ["pair", "greedy", "coupled", "caches", "sampling", "verdict"]
    assert "seed 1" in lines[0]
    assert all("passed" in line for line in lines[1:-1])
    assert lines[-1].split(maxsplit=1)[1].startswith("nothing wrong found")


def test_the_json_is_strict_and_says_what_the_words_say(attention_pair: Pair) -> None:
    found = audited(attention_pair)
    report = json.loads(to_json(found, **NAMES), parse_constant=pytest.fail)
    assert (report["schema"], report["passed"], report["seed"], report["target"]) == (1, True, 1, "big.gguf")
    assert [check["words"] for check in report["checks"]] == [each.words for each in found.outcomes]
    assert report["checks"][-1]["figures"]["false_alarm"] == 1e-4


def test_the_report_holds_nothing_that_a_terminal_obeys() -> None:
    nothing, hostile = Audit((), 1, 2.0), {"target": "\x1b[2J\x9b", "draft": "\x7f"}
    assert json.loads(to_json(nothing, **hostile))["target"] == hostile["target"]
    for text in (to_json(nothing, **hostile), to_words(nothing, **hostile)):
        assert {each for each in text if not each.isprintable()} == {"\n"}


def test_a_failed_check_is_named_in_the_verdict(attention_pair: Pair) -> None:
    found = audited(attention_pair)
    broken = replace(found, outcomes=(replace(found.outcomes[0], passed=False), *found.outcomes[1:]))
    *_, verdict = to_words(broken, **NAMES).splitlines()
    assert "greedy failed" in verdict
    assert json.loads(to_json(broken, **NAMES))["passed"] is False
