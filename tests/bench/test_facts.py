"""What a bench says of the machine, the models and their memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli.bench import facts
from specdec_cli.bench.facts import find_facts, find_machine
from specdec_cli.catalog import Pair
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from tests.engine import Notices


def test_the_processor_is_named_as_it_names_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nprocessor\t: 1\nmodel name\t: Some CPU\n", "utf-8")
    monkeypatch.setattr(facts, "CPU_INFO", info)
    assert find_machine().cpu == "Some CPU @ 3 GHz"


def test_a_system_that_tells_no_name_still_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "CPU_INFO", tmp_path / "none")
    machine = find_machine()
    assert machine.cpu
    assert machine.cores >= 1
    assert machine.llama_cpp_python.count(".") == 2


def test_both_models_count_for_memory_and_the_pair_is_in_words(attention_pair: Pair) -> None:
    with Session(attention_pair, ModelSettings(threads=1), Notices().listener) as session:
        found = find_facts(session)
    assert found.draft is not None
    assert found.memory.weights == found.target.bytes + found.draft.bytes
    assert (found.target_name, found.draft_name) == ("target.gguf on CPU", "draft.gguf on CPU")
    assert found.memory.caches
    assert found.memory.peak is None or found.memory.peak > found.memory.weights
    assert found.settings.threads == 1


def test_a_draft_without_a_model_has_no_model(attention_pair: Pair) -> None:
    with Session(Pair(attention_pair.target, "lookup"), ModelSettings(threads=1), Notices().listener) as session:
        found = find_facts(session)
    assert (found.draft, found.draft_name) == (None, "lookup")
