from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specdec_cli.catalog import NgramFile, Pair, PredictedText
from specdec_cli.core.ngram_counts import count, observe
from specdec_cli.llama.gguf import read_vocabulary
from specdec_cli.ngram_file import write_ngrams
from specdec_cli.pairs import check as pair_check
from specdec_cli.pairs.check import CheckOptions, Report, check_pair
from tests.toy_gguf import Toy, attention_toy
from tests.toy_kinds import kind_toy

ANY = CheckOptions()


def check(
    folder: Path, target: Toy, draft: Toy | None = None, options: CheckOptions = ANY, draft_tokens: int | None = None
) -> Report:
    ours = target.write(folder / "target.gguf")
    if draft is None:
        return check_pair(Pair(ours, "lookup", draft_tokens), options)
    return check_pair(Pair(ours, draft.write(folder / "draft.gguf"), draft_tokens), options)


def renamed(toy: Toy, count: int) -> Toy:
    """The same with other texts for its first `count` letters, so that so many tokens differ."""
    for token in range(ord("A"), ord("A") + count):
        toy = toy.spelling(token, f"word{token}")
    return toy


def test_two_sizes_of_one_family_can_run(tmp_path: Path) -> None:
    report = check(tmp_path, attention_toy(), attention_toy(2.0))
    assert (report.obstacle, report.way_out) == ("", "")
    assert report.agreement
    assert (report.agreement.difference, report.agreement.shared) == ("", 1.0)


def test_memory_is_that_of_weights_and_caches_of_both(tmp_path: Path) -> None:
    report = check(tmp_path, attention_toy(), attention_toy(), CheckOptions(512))
    file = report.target.description.path.stat().st_size
    assert report.target.cache == 512 * 2 * 128 * 2
    assert report.memory == 2 * (file + report.target.cache)


def test_the_context_is_the_default_the_one_asked_for_or_all_that_was_trained(tmp_path: Path) -> None:
    toy = attention_toy().having({"llama.context_length": 9000})
    sizes = [check(tmp_path, toy, options=CheckOptions(size)).target.context for size in (None, 300, 0, 10000)]
    assert sizes == [4096, 300, 9000, 10000]
    assert check(tmp_path, attention_toy()).target.context == 2048, "no more than it was trained for"
    assert check(tmp_path, toy, options=CheckOptions(10000)).remarks == ("the target was trained for 9,000 tokens",)


def test_types_of_caches_count(tmp_path: Path) -> None:
    small = check(tmp_path, attention_toy(), options=CheckOptions(512, "q8_0", "q4_0")).target.cache
    assert small < check(tmp_path, attention_toy(), options=CheckOptions(512)).target.cache / 2


def test_states_are_kept_for_as_many_tokens_as_may_be_drafted(tmp_path: Path) -> None:
    four = check(tmp_path, kind_toy("mamba"), draft_tokens=4)
    auto = check(tmp_path, kind_toy("mamba"))
    plain = check_pair(Pair(four.target.description.path, "none"), ANY)
    assert four.target.states == 5 * plain.target.states
    assert auto.target.states == 17 * plain.target.states


def test_another_vocabulary_can_run_and_is_told_with_its_share_and_first_difference(tmp_path: Path) -> None:
    report = check(tmp_path, attention_toy(), renamed(attention_toy(), 26))
    assert report.obstacle == ""
    assert report.agreement
    assert report.agreement.difference == "token 65 is 'word65', the target's is 'A'"
    assert report.agreement.shared == pytest.approx((256 - 26) / 256, abs=0.001)
    assert "of the target's family" in report.way_out


def test_vocabularies_that_share_next_to_nothing_cannot_run(tmp_path: Path) -> None:
    stranger = attention_toy()
    stranger = replace(stranger, tokens=tuple(f"word{index}" for index in range(len(stranger.tokens))))
    report = check(tmp_path, attention_toy(), stranger)
    assert "does not fit target" in report.obstacle
    assert "take a model of the target's family" in report.way_out
    assert report.agreement
    assert report.agreement.shared == 0


def test_padding_is_no_difference(tmp_path: Path) -> None:
    report = check(tmp_path, attention_toy().padded(5), attention_toy())
    assert report.agreement
    assert report.agreement.difference == ""


def test_what_does_not_fit_in_memory_cannot_run_and_the_caches_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_check, "memory", lambda: 2 * 10**6)
    report = check(tmp_path, attention_toy(), attention_toy())
    assert report.obstacle == "it needs 3 MB of memory and this machine has 2 MB"
    assert report.way_out.startswith("caches are 2 MB of it: a smaller --ctx-size")
    monkeypatch.setattr(pair_check, "memory", lambda: None)
    assert check(tmp_path, attention_toy(), attention_toy()).obstacle == ""


def obstacle(target: Path, source: PredictedText | NgramFile) -> str:
    return check_pair(Pair(target, ("lookup", source)), ANY).obstacle


def test_a_text_that_the_draft_would_read_must_be_there_and_not_empty(tmp_path: Path) -> None:
    target, path = attention_toy().write(tmp_path / "target.gguf"), tmp_path / "old.py"
    assert obstacle(target, PredictedText(path)) == f"text {path} cannot be read: No such file or directory"
    path.touch()
    assert obstacle(target, PredictedText(path)) == f"text {path} is empty"
    path.write_text("code", "utf-8")
    assert obstacle(target, PredictedText(path)) == ""


def test_a_table_that_the_draft_would_read_must_be_one_of_the_targets_vocabulary(tmp_path: Path) -> None:
    target, path = attention_toy().write(tmp_path / "target.gguf"), tmp_path / "some.ngrams"
    assert obstacle(target, NgramFile(path)) == f"table {path} cannot be read: No such file or directory"
    path.write_bytes(b"no table")
    assert obstacle(target, NgramFile(path)) == f"{path} is not a table of specdec, or is damaged"
    for whose, expected in (
        (b"another one".ljust(16), f"table {path} is about another vocabulary than the target's"),
        (read_vocabulary(target, "target").fingerprint, ""),
    ):
        path.unlink()
        write_ngrams(path, count(observe([1, 2], 2), 259), whose)
        assert obstacle(target, NgramFile(path)) == expected
