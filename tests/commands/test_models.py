"""`specdec models` on toy models, as a user meets it."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from specdec_cli.catalog import HubFile, place_of
from specdec_cli.cli import run
from specdec_cli.errors import ModelError
from specdec_cli.pairs import check as pair_check
from specdec_cli.pairs import entries as pair_entries
from specdec_cli.pairs import pulling as pair_pulling
from specdec_cli.placing_keys import PLACING_KEYS
from tests.commands.test_generate import Outcome
from tests.pty_process import PtyProcess
from tests.toy_gguf import attention_toy

MACHINE = 25 * 10**9
OWN = """\
default = "toys"

# Both are here.
[pairs.toys]
target = "target.gguf"
draft = "draft.gguf"
draft_tokens = 4
notes = "small [bold]and[/bold] quick"

[pairs.remote]
target = { repo = "o/r", file = "big.gguf", size = 30000000000, licence = "MIT" }
draft = { repo = "o/r", file = "small.gguf", size = 400000000 }

[pairs.mixed]
target = "target.gguf"
draft = { repo = "o/r", file = "small.gguf" }

[pairs.chain]
target = "target.gguf"
draft = "lookup,draft.gguf"
"""


Models = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of its own: the user's models.toml with two toys beside it, and nothing fetched."""
    for room in (pair_check, pair_entries):
        monkeypatch.setattr(room, "memory", lambda: MACHINE)
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_, **__: tmp_path)
    monkeypatch.setattr(platformdirs, "user_data_path", lambda *_, **__: tmp_path / "data")
    (tmp_path / "models.toml").write_text(OWN, "utf-8")
    attention_toy(3.0).padded(60).write(tmp_path / "target.gguf")
    attention_toy(2.0).write(tmp_path / "draft.gguf")
    return tmp_path


@pytest.fixture
def models(home: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Models:
    """Run `specdec models` in this process, with no terminal on any stream."""

    def start(*arguments: object) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = run(["models", *map(str, arguments)])
        captured = capsysbinary.readouterr()
        return Outcome(code, captured.out.decode(), captured.err.decode())

    return start


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[HubFile]:
    """What a pull asked the hub for; each becomes an empty file."""
    asked: list[HubFile] = []

    def fetch(source: HubFile, *, on_progress: Callable[[str, float | None], object]) -> Path:
        on_progress(source.file, 0.5)
        asked.append(source)
        place_of(source).parent.mkdir(parents=True, exist_ok=True)
        place_of(source).write_bytes(b"GGUF")
        return place_of(source)

    monkeypatch.setattr(pair_pulling, "fetch", fetch)
    return asked


def table(outcome: Outcome) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in outcome.out.splitlines()}


def test_list_shows_every_pair_in_a_line_uncut_in_a_pipe(models: Models) -> None:
    outcome = models("list")
    rows = table(outcome)
    assert (outcome.code, outcome.err) == (0, "")
    assert rows["NAME"] == ["NAME", "TARGET", "DRAFT", "SIZE", "HERE", "FITS", "LICENCE"]
    assert rows["toys"] == ["toys", "*", "target", "draft", "1", "MB", "yes", "yes", "?"]
    assert rows["remote"] == ["remote", "big", "small", "30.4", "GB", "no", "no", "MIT"]
    assert rows["mixed"] == ["mixed", "target", "small", "?", "in", "part", "?", "?"]
    assert rows["chain"][1:4] == ["target", "lookup,", "draft"]
    assert "Ministral-3-14B-Instruct-2512-Q4_K_M" in outcome.out
    assert "\x1b" not in outcome.out


@pytest.mark.parametrize("columns", [80, 100])
def test_list_fits_the_window_and_cuts_only_the_names_of_files(home: Path, columns: int) -> None:
    with PtyProcess(["models", "list", "--config", home / "models.toml"], columns=columns, rows=50) as process:
        assert process.wait() == 0
        rows = {line.split()[0]: line.split() for line in process.lines()}
    assert rows["toys"][:2] == ["toys", "*"]
    assert (rows["remote"][-5:-2], rows["remote"][-1]) == (["30.4", "GB", "no"], "MIT")
    assert ("DRAFT" in rows["NAME"]) == (columns == 100)
    assert rows["qwen2.5-coder-1.5b"][-1] == "Apache-2.0"
    assert len(rows) == len(process.lines()), "one line a pair"


def test_list_as_json_says_all_with_null_for_what_is_not_known(models: Models, home: Path) -> None:
    entries = {entry["name"]: entry for entry in models("list", "--json").json}
    assert entries["remote"] == {
        "name": "remote",
        "default": False,
        "own": True,
        "target": {
            "file": "big.gguf",
            "repo": "o/r",
            "revision": None,
            "sha256": None,
            "path": str(home / "data/models/o/r/big.gguf"),
            "here": False,
            "size": 30_000_000_000,
            "licence": "MIT",
        },
        "draft": {
            "file": "small.gguf",
            "repo": "o/r",
            "revision": None,
            "sha256": None,
            "path": str(home / "data/models/o/r/small.gguf"),
            "here": False,
            "size": 400_000_000,
            "licence": None,
        },
        "drafters": ["small.gguf"],
        "draft_tokens": None,
        **dict.fromkeys(("rule", "draft_temperature", "threads", "draft_threads", "batch_size", "tuned")),
        **dict.fromkeys(PLACING_KEYS),
        "size": 30_400_000_000,
        "here": False,
        "fits": False,
        "notes": None,
        "models_toml": str(home / "models.toml"),
    }
    assert (entries["toys"]["default"], entries["toys"]["here"], entries["toys"]["fits"]) == (True, True, True)
    assert (entries["qwen3-8b"]["own"], entries["mixed"]["size"], entries["mixed"]["fits"]) == (False, None, None)


def test_show_says_all_about_one_pair_every_character_literally(models: Models, home: Path) -> None:
    lines = models("show", "toys").out.splitlines()
    assert lines[0] == "toys (the default)"
    assert lines[1].startswith(f"target    {home / 'target.gguf'} (")
    assert lines[1].endswith("here)")
    assert "length    4 tokens a round" in lines
    assert "notes     small [bold]and[/bold] quick" in lines
    assert f"from      {home / 'models.toml'}" in lines
    assert "target    o/r: big.gguf (30.0 GB, MIT, not here)" in models("show", "remote").out
    assert "drafters  lookup, draft.gguf" in models("show", "chain").out
    pinned = "revision 7c41481f57cb95916b40956ab2f0b139b296d974, SHA-256 d98cdcbd03e17ce47681435b5150e34c1417f50b5c001"
    assert f"          {pinned}" in models("show", "qwen3-8b").out
    assert models("show").out == models("show", "toys").out


def test_show_says_how_a_pair_runs_and_what_was_measured(models: Models, home: Path) -> None:
    measured = 'date = "2026-11-30", machine = "Toy, 8 CPUs", plain = 10, speculative = 13.5, speed_up = 1.35'
    settings = 'rule = "token"\ndraft_temperature = 0.5\nthreads = 4\ndraft_threads = 2\nbatch_size = 512\n'
    text = f'[pairs.p]\ntarget = "target.gguf"\n{settings}tuned = {{ {measured}, lowest = 1.3, highest = 1.4 }}\n'
    (home / "models.toml").write_text(text, "utf-8")
    lines = models("show", "p").out.splitlines()
    assert lines[4:9] == [
        "sampling  rule token, draft temperature 0.5",
        "threads   4 of the target, 2 of the draft",
        "batch     512 prompt tokens in a pass",
        "tuned     2026-11-30 on Toy, 8 CPUs",
        "          plain 10.0 tokens/s, drafting 13.5: 1.35 × plain (1.30 to 1.40)",
    ]
    entry = models("show", "p", "--json").json
    assert (entry["rule"], entry["draft_temperature"], entry["threads"]) == ("token", 0.5, 4)
    assert entry["tuned"]["speed_up"] == 1.35


def test_show_says_why_a_pair_does_not_draft_and_what_is_known_of_a_tuning_by_hand(models: Models, home: Path) -> None:
    why = "drafting does not pay here"
    text = f'[pairs.p]\ntarget = "target.gguf"\ndraft_tokens = 0\ntuned = {{ reason = "{why}", plain = 3 }}\n'
    (home / "models.toml").write_text(text, "utf-8")
    lines = models("show", "p").out.splitlines()
    assert lines[3:6] == ["length    0 tokens a round", "tuned     ? on ?", f"          {why}"]


def test_show_takes_files_too(models: Models, home: Path) -> None:
    entry = models("show", "-m", home / "target.gguf", "-d", home / "draft.gguf", "--json").json
    assert (entry["name"], entry["drafters"], entry["here"]) == (None, ["draft.gguf"], True)


def test_path_prints_the_files_one_a_line_for_scripts(models: Models, home: Path) -> None:
    assert models("path", "toys").out == f"{home / 'target.gguf'}\n{home / 'draft.gguf'}\n"
    assert models("path", "toys", "-d", "none").out == f"{home / 'target.gguf'}\n"
    assert models("path").out == models("path", "toys").out


def test_path_of_what_is_not_here_is_exit_code_3_with_the_command_that_fetches_it(models: Models, home: Path) -> None:
    outcome = models("path", "remote")
    assert (outcome.code, outcome.out) == (3, "")
    assert "hint: fetch it with: specdec models pull remote\n" in outcome.err
    (home / "draft.gguf").unlink()
    outcome = models("path", "toys")
    assert (outcome.code, outcome.out) == (3, "")
    assert f"error: {home / 'draft.gguf'} does not exist" in outcome.err


def test_add_writes_a_pair_that_works_at_once_and_keeps_the_rest(models: Models, home: Path) -> None:
    outcome = models("add", "new", "-m", home / "target.gguf", "-d", home / "draft.gguf", "-k", 3, "--notes", "n")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f'note: "new" is in {home / "models.toml"} now\n'
    text = (home / "models.toml").read_text("utf-8")
    assert text.startswith(OWN)
    assert tomllib.loads(text)["pairs"]["new"]["draft_tokens"] == 3
    assert models("check", "new").code == 0


def test_add_refuses_a_known_name_unless_forced_and_a_file_that_is_not_there(models: Models, home: Path) -> None:
    outcome = models("add", "toys", "-m", home / "draft.gguf")
    assert outcome.code == 2
    assert 'has a pair named "toys" already' in outcome.err
    assert models("add", "new", "-m", home / "none.gguf").code == 3
    assert (home / "models.toml").read_text("utf-8") == OWN
    assert models("add", "toys", "-m", home / "draft.gguf", "--force", "-q").err == ""
    assert models("path", "toys").out == f"{home / 'draft.gguf'}\n"


def test_a_shipped_pair_can_be_overridden_and_comes_back_when_the_own_one_is_removed(
    models: Models, home: Path
) -> None:
    assert models("add", "qwen3-8b", "-m", home / "target.gguf").code == 0
    assert models("path", "qwen3-8b").out == f"{home / 'target.gguf'}\n"
    assert "the shipped pair of that name counts again" in models("remove", "qwen3-8b").err
    assert models("path", "qwen3-8b").code == 3


def test_a_shipped_pair_cannot_be_removed(models: Models, home: Path) -> None:
    outcome = models("remove", "qwen3-8b")
    assert outcome.code == 2
    assert '"qwen3-8b" is a shipped pair, which cannot be removed' in outcome.err
    assert (home / "models.toml").read_text("utf-8") == OWN


def test_removing_the_default_falls_back_to_the_shipped_one(models: Models) -> None:
    assert models("remove", "toys").code == 0
    assert models("default").out == "smollm2\n"
    assert models("show", "toys").code == 2


def test_default_says_and_sets(models: Models, home: Path) -> None:
    assert models("default").out == "toys\n"
    outcome = models("default", "qwen3-8b")
    assert (outcome.code, outcome.out) == (0, "")
    assert models("default").out == "qwen3-8b\n"
    assert "# Both are here." in (home / "models.toml").read_text("utf-8")


@pytest.mark.parametrize("command", ["show", "path", "remove", "default", "check", "pull"])
def test_an_unknown_name_is_refused_with_the_nearest(models: Models, command: str) -> None:
    outcome = models(command, "qwen38b")
    assert (outcome.code, outcome.out) == (2, "")
    assert 'did you mean "qwen3-8b"?' in outcome.err


@pytest.mark.parametrize("command", ["show", "path", "check"])
def test_a_name_and_a_target_contradict_each_other(models: Models, home: Path, command: str) -> None:
    outcome = models(command, "toys", "-m", home / "target.gguf")
    assert outcome.code == 2
    assert "NAME and --target both name the big model" in outcome.err


def test_config_takes_the_place_of_the_own_table_everywhere(models: Models, home: Path) -> None:
    other = home / "other.toml"
    other.touch()
    assert models("add", "x", "-m", home / "target.gguf", "--config", other).code == 0
    assert models("default", "x", "--config", other).code == 0
    for command in ("show", "path", "check"):
        assert models(command, "--config", other).code == 0
    assert "toys" not in table(models("list", "--config", other))
    assert models("remove", "x", "--config", other).code == 0
    assert (home / "models.toml").read_text("utf-8") == OWN


def test_check_says_what_can_be_known_and_the_verdict_last(models: Models, home: Path) -> None:
    outcome = models("check", "toys", "--ctx-size", 512)
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err) == (0, "")
    assert lines[0] == f"target    {home / 'target.gguf'}"
    assert "          llama, 2 layers, trained for 2,048 tokens" in lines
    assert "          tokenizer gpt2/default, 259 tokens; beginning of text 256, end of text 257" in lines
    assert "          goes back by leaving tokens out of its attention" in lines
    assert any(line.endswith("cache of 512 tokens 0 MB") for line in lines)
    assert "tokens    the same in both, but for 60 at the end of one" in lines
    assert lines[-1] == "verdict   can run"


def test_check_of_what_cannot_run_is_exit_code_3_with_the_way_out(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_check, "memory", lambda: 10**6)
    outcome = models("check", "toys")
    assert outcome.code == 3
    assert outcome.out.splitlines()[-2].startswith("verdict   cannot run: it needs 3 MB of memory")
    assert outcome.out.splitlines()[-1].startswith("hint      caches are ")
    report = models("check", "toys", "--json")
    assert (report.code, report.json["runs"]) == (3, False)


def test_check_as_json_has_all_numbers(models: Models) -> None:
    report = models("check", "toys", "-c", 512, "--cache-type-k", "q8_0", "--json").json
    assert (report["pair"], report["runs"], report["verdict"], report["hint"]) == ("toys", True, "can run", None)
    assert report["vocabulary"] == {"same": True, "shared": pytest.approx(259 / 319), "first_difference": None}
    assert report["target"]["cache"] == 512 * (4 * 34 + 128 * 2)
    assert report["draft"]["rollback"] == "attention"
    assert report["memory"] == sum(report[role][part] for role in ("target", "draft") for part in ("weights", "cache"))
    assert report["machine_memory"] == MACHINE


def test_check_names_special_tokens_that_differ(models: Models, home: Path) -> None:
    attention_toy().having({"tokenizer.ggml.eos_token_id": 258}).write(home / "draft.gguf")
    assert "special ones differ: end of text 257 and 258 (the target's decide)" in models("check", "toys").out


def test_check_of_a_damaged_file_is_one_line(models: Models, home: Path) -> None:
    (home / "draft.gguf").write_bytes(b"GGUF")
    outcome = models("check", "toys")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.count("\n") == 2
    assert "draft.gguf is damaged or cut short" in outcome.err


def test_pull_fetches_what_is_missing_and_says_so(models: Models, fetched: list[HubFile], home: Path) -> None:
    outcome = models("pull", "remote")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "note: remote is here, 0 MB\n"
    assert fetched == [HubFile("o/r", "big.gguf"), HubFile("o/r", "small.gguf")]
    assert models("path", "remote").out.count("\n") == 2
    assert models("pull", "remote", "-q").err == ""


def test_pull_of_a_pair_of_files_needs_no_hub(models: Models, fetched: list[HubFile]) -> None:
    assert models("pull", "toys").code == 0
    assert fetched == []


def test_pull_tells_what_no_hub_can_give(models: Models, fetched: list[HubFile], home: Path) -> None:
    (home / "target.gguf").unlink()
    outcome = models("pull", "mixed")
    assert outcome.code == 3
    assert f"{home / 'target.gguf'} does not exist" in outcome.err
    assert fetched == []


def test_a_pull_that_fails_is_one_line(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: HubFile, **_: object) -> Path:
        raise ModelError("the hub cannot be reached", hint="try again")

    monkeypatch.setattr(pair_pulling, "fetch", fail)
    outcome = models("pull", "remote")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err == "error: the hub cannot be reached\nhint: try again\n"
