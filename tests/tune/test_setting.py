from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli.catalog import NgramFile, PredictedText
from specdec_cli.core.costs import Costs
from specdec_cli.tune.setting import (
    MOST_CHAINS,
    Chain,
    Setting,
    chains,
    draft_thread_counts,
    lengths,
    thread_counts,
    to_name,
    to_words,
)

MODEL = Path("folder/small.gguf")
TABLE = NgramFile(Path("folder/x.ngrams"))
TEXT = PredictedText(Path("folder/old.py"))


def test_a_model_is_tried_alone_with_lookup_and_against_lookup() -> None:
    assert chains((MODEL,)) == [(MODEL,), ("lookup",), ("lookup", MODEL)]


def test_what_the_pair_has_comes_first_and_its_files_go_in_front_of_others() -> None:
    own: Chain = ("lookup", TABLE)
    assert chains(own) == [own, ("lookup",), (TABLE,), (TABLE, "lookup")]
    found = chains((TABLE, MODEL))
    assert found[0] == (TABLE, MODEL)
    assert (TABLE, "lookup", MODEL) in found
    assert len(found) <= MOST_CHAINS


def test_a_path_that_no_chain_could_be_written_with_stands_alone() -> None:
    odd = Path("a,b.gguf")
    assert chains((odd,)) == [(odd,), ("lookup",)]


def test_lookup_alone_leaves_no_choice() -> None:
    assert chains(("lookup",)) == [("lookup",)]


@pytest.mark.parametrize(
    ("usable", "target", "draft"),
    [(1, [1], [1]), (2, [2, 1], [2, 1]), (4, [4, 2], [4, 2, 1]), (16, [16, 8, 12], [16, 8, 4])],
)
def test_threads_are_all_cpus_or_fewer(usable: int, target: list[int], draft: list[int]) -> None:
    assert (thread_counts(usable), draft_thread_counts(usable)) == (target, draft)


def test_the_fixed_lengths_that_are_tried_are_those_that_should_be_fastest() -> None:
    cheap = Costs(tuple(1 + 0.02 * n for n in range(17)), {"model": (0.05,) * 17})
    assert lengths(0.95, cheap, "model") == ["auto", 16, 15]
    dear = Costs(tuple(1.0 + 0.5 * n for n in range(17)), {"model": (0.3,) * 17})
    assert lengths(0.5, dear, "model") == ["auto", 1, 2]


def test_chains_are_written_as_the_command_line_takes_them_and_shown_by_names() -> None:
    assert to_words((TEXT, TABLE, "lookup", MODEL)) == (f"text:{TEXT.path},table:{TABLE.path},lookup,{MODEL}")
    assert to_name((TEXT, TABLE, "lookup", MODEL)) == "text:old.py,table:x.ngrams,lookup,model"


def test_a_setting_knows_what_a_temperature_can_change() -> None:
    assert Setting((TABLE,), 1, 1).draws
    assert not Setting(("lookup", TEXT), 1, 1).draws
    assert not Setting((TABLE,), 1, 1).has_model
