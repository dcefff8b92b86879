from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest

from specdec_cli.catalog import NgramFile, Pair, PredictedText
from specdec_cli.errors import ModelError
from specdec_cli.pairs import check as pair_check
from specdec_cli.pairs.check import CheckOptions, Report, check_pair, gigabytes
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


@pytest.mark.parametrize("kind", [PredictedText, NgramFile])
def test_a_file_that_the_draft_would_read_must_be_there(
    tmp_path: Path, kind: type[PredictedText] | type[NgramFile]
) -> None:
    pair = Pair(attention_toy().write(tmp_path / "target.gguf"), ("lookup", kind(tmp_path / "old.py")))
    assert check_pair(pair, ANY).obstacle == f"{tmp_path / 'old.py'}, which the draft reads, does not exist"
    (tmp_path / "old.py").touch()
    assert check_pair(pair, ANY).obstacle == ""


def test_a_draft_with_less_context_is_told(tmp_path: Path) -> None:
    draft = attention_toy().having({"llama.context_length": 512})
    report = check(tmp_path, attention_toy(), draft, CheckOptions(1000))
    assert (report.target.context, report.draft and report.draft.context) == (1000, 512)
    assert "the draft knows 512 tokens of context: behind these nothing is drafted" in report.remarks


def test_a_draft_as_big_as_its_target_is_told(tmp_path: Path) -> None:
    told = [remark for remark in check(tmp_path, attention_toy(), attention_toy()).remarks if "no smaller" in remark]
    assert told
    assert check(tmp_path, attention_toy().padded(50), attention_toy()).remarks == ()


def test_a_target_without_a_template_is_told(tmp_path: Path) -> None:
    report = check(tmp_path, attention_toy().having({"tokenizer.chat_template": None}))
    assert report.remarks == ("the target has no chat template: specdec generate needs --raw",)


def test_parts_of_a_model_count(tmp_path: Path) -> None:
    first = attention_toy().write(tmp_path / "x-00001-of-00002.gguf")
    with pytest.raises(ModelError, match=r"x-00002-of-00002\.gguf does not exist"):
        check_pair(Pair(first, "none"), ANY)
    attention_toy().write(tmp_path / "x-00002-of-00002.gguf")
    assert check_pair(Pair(first, "none"), ANY).target.description.weights == 2 * first.stat().st_size


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_file_that_is_not_there_is_told_with_its_role(tmp_path: Path, role: str) -> None:
    files = {each: attention_toy().write(tmp_path / f"{each}.gguf") for each in ("target", "draft")}
    files[role].unlink()
    with pytest.raises(ModelError, match=f"^{role} .*{role}.gguf does not exist"):
        check_pair(Pair(files["target"], files["draft"]), ANY)


def test_garbage_is_collected_again_afterwards_even_after_an_error(tmp_path: Path) -> None:
    check(tmp_path, attention_toy())
    assert gc.isenabled()
    with pytest.raises(ModelError):
        check_pair(Pair(tmp_path / "none", "none"), ANY)
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 MB"), (98_362_432, "98 MB"), (999_499_999, "999 MB"), (999_600_000, "1.0 GB"), (43_328_093_280, "43.3 GB")],
)
def test_sizes_are_gigabytes_or_megabytes(count: int, words: str) -> None:
    assert gigabytes(count) == words
