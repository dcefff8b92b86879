from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.llama.processor import this_machine
from specdec_cli.pairs import here
from specdec_cli.pairs.here import as_it_holds_here, to_settings, with_draft_threads
from specdec_cli.settings import DEFAULT_BATCH, ModelSettings, Placing

PAIR = Pair(Path("t"), Path("d"), 3, "p", rule="token", threads=4, draft_threads=2, batch_size=512)


@pytest.fixture(autouse=True)
def toy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "this_machine", lambda: "Toy, 8 CPUs")
    monkeypatch.setattr(here, "usable_cpus", lambda: 8)


def on(machine: str | None) -> Pair:
    return Pair(Path("t"), Path("d"), 3, "p", rule="token", threads=4, draft_threads=2, batch_size=512, machine=machine)


def hold(pair: Pair) -> tuple[Pair, list[str]]:
    notices: list[str] = []
    return as_it_holds_here(pair, notices.append), notices


@pytest.mark.parametrize("machine", [None, "Toy, 8 CPUs"])
def test_what_the_user_wrote_or_was_found_here_holds(machine: str | None) -> None:
    assert hold(on(machine)) == (on(machine), [])


def test_what_was_found_on_another_machine_is_left_out_with_one_notice() -> None:
    pair, notices = hold(on("Other, 2 CPUs"))
    assert (pair.draft_tokens, pair.threads, pair.draft_threads, pair.batch_size) == (None, None, None, None)
    assert pair.rule == "token"
    assert notices == [
        '"p" was tuned on Other, 2 CPUs, so its draft_tokens, threads, draft_threads, batch_size are ignored here; '
        "specdec tune finds others"
    ]


def test_a_tuning_that_left_nothing_to_ignore_needs_no_notice() -> None:
    pair = Pair(Path("t"), Path("d"), None, "p", rule="token", machine="Other, 2 CPUs")
    assert hold(pair) == (pair, [])


def test_the_user_wins_then_the_pair_then_the_default() -> None:
    bare = Pair(Path("t"), "none")
    held = to_settings(ModelSettings(), bare)
    assert (held.threads, held.draft_threads, held.batch_size) == (8, None, DEFAULT_BATCH)
    held = to_settings(ModelSettings(), PAIR)
    assert (held.threads, held.draft_threads, held.batch_size) == (4, 2, 512)
    held = to_settings(ModelSettings(threads=6, batch_size=64, draft_threads=5), PAIR)
    assert (held.threads, held.draft_threads, held.batch_size) == (6, 5, 64)


def test_threads_of_the_user_are_for_both_models_that_share_the_cpu() -> None:
    held = with_draft_threads(to_settings(ModelSettings(threads=6), PAIR), shares_cpu=True)
    assert (held.threads, held.draft_threads) == (6, 6)


def test_a_draft_that_has_the_cpu_to_itself_has_all_of_it_unless_said_otherwise() -> None:
    held = with_draft_threads(to_settings(ModelSettings(threads=1), PAIR), shares_cpu=False)
    assert (held.threads, held.draft_threads) == (1, 8)
    said = with_draft_threads(to_settings(ModelSettings(threads=1, draft_threads=3), PAIR), shares_cpu=False)
    assert said.draft_threads == 3


def test_the_user_wins_over_the_pair_in_placing_too() -> None:
    remote = Pair(Path("t"), "none", placing=Placing(rpc=("far:1",)))
    assert to_settings(ModelSettings(), remote).placing == remote.placing
    assert to_settings(ModelSettings(placing=Placing(rpc=())), remote).placing.rpc == ()


def test_a_machine_is_called_by_its_processor_and_usable_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    from specdec_cli.llama import processor

    for count, ending in ((1, ", 1 CPU"), (3, ", 3 CPUs")):
        monkeypatch.setattr(processor, "usable_cpus", lambda count=count: count)
        name = this_machine()
        assert name.endswith(ending)
        assert len(name) > len(ending)
