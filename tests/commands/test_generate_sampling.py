"""Rules, samplers, grammars and log-probabilities of `specdec generate`, as a user meets them, on toy models."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.order import DEFAULT_ORDER
from specdec_cli.core.verify import RULES
from tests.commands import test_generate
from tests.commands.test_generate import Generate
from tests.core.sampling.reference_penalties import penalise
from tests.toy_gguf import EOS, memoryless_toy

generate = test_generate.generate

A, B, C, D, Z = b"ABCDz"
LOOPING = {A: {A: 3.0, B: 2.2, C: 1.6}, B: {A: 3.0, B: 2.5, C: 1.0}, C: {C: 2.0, A: 1.9, D: 0.1}, D: {A: 1.0, D: 0.9}}
"""Tokens that would rather repeat themselves than go on."""
LIST = """root ::= "[" item ("," item){0,3} "]"
item ::= [a-c]{1,3}
"""
SCHEMA = {
    "type": "object",
    "properties": {"on": {"type": "boolean"}, "sizes": {"type": "array", "items": {"enum": [1, 22]}, "maxItems": 3}},
    "required": ["on", "sizes"],
}


def looping(folder: Path, **metadata: Any) -> Path:
    """A toy that says D to a prompt, and then by LOOPING."""
    toy = memoryless_toy(LOOPING, {D: 0.0}).having({f"general.sampling.{key}": each for key, each in metadata.items()})
    return toy.write(folder / "looping.gguf")


def greedy_text(chain: SamplingChain, prompt: bytes, length: int, table: Mapping[int, Mapping[int, float]]) -> str:
    """The most likely text by hand."""
    said = list(prompt)
    for _ in range(length):
        logits = penalise(dict(table[said[-1]]), chain, said)
        said.append(max(logits, key=lambda token: (logits[token], -token)))
    return bytes(said[len(prompt) :]).decode()


def models(pair: Pair, kind: str) -> Sequence[object]:
    return ("-m", pair.target, "-d", pair.draft if kind == "model" else kind)


@pytest.mark.parametrize(
    "penalties", [{"repeat_penalty": 1.5, "repeat_last_n": 3}, {"frequency_penalty": 0.27}, {"repeat_penalty": 1.5}]
)
def test_penalties_inside_a_block_give_the_text_of_no_draft(
    penalties: dict[str, Any], generate: Generate, tmp_path: Path
) -> None:
    path = looping(tmp_path)
    common = ("A", "--raw", "-m", path, "-n", 40, "--temperature", 0)
    assert generate(*common).out == "A" * 40
    wanted = greedy_text(SamplingChain(0, **penalties), b"A", 40, LOOPING)
    assert "B" in wanted
    flags = [word for name, value in penalties.items() for word in (f"--{name.replace('_', '-')}", value)]
    drafts = (("-d", "none"), ("-d", "lookup"), ("-d", path, "-k", 1), ("-d", path, "-k", 8))
    assert [generate(*common, *flags, *draft).out for draft in drafts] == [wanted] * len(drafts)


def test_the_coupled_rule_says_the_same_with_any_draft_and_none(
    generate: Generate, attention_pair: Pair, bad_draft_pair: Pair
) -> None:
    rest = ("--rule", "coupled", "-s", 4, "-n", 40, "--temperature", 1.2, "--repeat-penalty", 1.1)
    exact = ("--cache-type-k", "f32", "--cache-type-v", "f32", "--flash-attn", "off", "--json")
    pairs = [models(attention_pair, kind) for kind in ("none", "lookup", "model")] + [models(bad_draft_pair, "model")]
    lengths = (("-k", 1), ("-k", 8))
    answers = [generate("prompt", *pair, *rest, *length, *exact).json for pair in pairs for length in lengths]
    assert len({answer["text"] for answer in answers}) == 1
    assert {answer["settings"]["rule"] for answer in answers} == {"coupled"}
    other = generate("prompt", *pairs[0], *rest, "-s", 5, *exact).json
    assert other["text"] != answers[0]["text"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("draft", ["none", "lookup", "model"])
def test_an_answer_follows_its_grammar_to_the_end(
    draft: str, rule: str, generate: Generate, attention_pair: Pair, tmp_path: Path
) -> None:
    path = tmp_path / "list.gbnf"
    path.write_text(LIST)
    said = set()
    for seed in range(3, 7):
        outcome = generate(
            "p",
            *models(attention_pair, draft),
            "--grammar",
            path,
            "--rule",
            rule,
            "-s",
            seed,
            "--json",
            "-k",
            3,
            "--temperature",
            2,
        )
        answer = outcome.json
        assert re.fullmatch(r"\[[a-c]{1,3}(,[a-c]{1,3}){0,3}\]", answer["text"])
        assert answer["finish_reason"] == "stop"
        assert answer["settings"]["grammar"] == LIST
        assert answer["tokens"] == len(answer["text"])
        said.add(answer["text"])
    assert len(said) > 1


@pytest.mark.parametrize("form", ["text", "file"])
@pytest.mark.parametrize("draft", ["none", "model"])
def test_an_answer_to_a_schema_is_json_of_its_kind(
    draft: str, form: str, generate: Generate, attention_pair: Pair, tmp_path: Path
) -> None:
    schema = json.dumps(SCHEMA)
    (tmp_path / "schema.json").write_text(schema)
    given = schema if form == "text" else tmp_path / "schema.json"
    for seed in range(2):
        outcome = generate("p", *models(attention_pair, draft), "--json-schema", given, "-s", seed, "--min-p", 0)
        assert (outcome.code, outcome.err) == (0, "")
        answer = json.loads(outcome.out)
        assert list(answer) == ["on", "sizes"]
        assert isinstance(answer["on"], bool)
        assert set(answer["sizes"]) <= {1, 22}
        assert len(answer["sizes"]) <= 3


def test_what_a_schema_says_that_no_grammar_can_is_told_once_and_kept_quiet(
    generate: Generate, attention_pair: Pair
) -> None:
    schema = '{"type": "array", "items": {"type": "boolean"}, "maxItems": 2, "uniqueItems": true}'
    arguments = ("p", *models(attention_pair, "none"), "--json-schema", schema)
    outcome = generate(*arguments)
    assert isinstance(json.loads(outcome.out), list)
    assert outcome.err == "note: the answer will follow the schema but for its uniqueItems\n"
    assert generate(*arguments, "-q").err == ""


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("", "is empty"),
        ('root ::= "a', "cannot be used: "),
        ('root ::= "a" next', "cannot be used: "),
        ('first ::= "a"', "cannot be used: "),
        ('root ::= root "a" | "b"', "is left-recursive: rule root can begin with itself"),
        ('root ::= "\\x00"', "allows no token of the model's vocabulary to begin with"),
    ],
)
def test_a_grammar_that_no_answer_can_follow_is_one_line_and_exit_2(
    grammar: str, message: str, generate: Generate, attention_pair: Pair, tmp_path: Path
) -> None:
    path = tmp_path / "g.gbnf"
    path.write_text(grammar)
    outcome = generate("p", *models(attention_pair, "lookup"), "--grammar", path, "--stats")
    assert (outcome.code, outcome.out) == (2, "")
    error, hint = outcome.err.splitlines()
    assert error.startswith(f"error: grammar {path} {message}")
    assert hint.startswith("hint: ")


@pytest.mark.parametrize("draft", ["none", "lookup", "model"])
def test_a_grammar_that_leads_nowhere_ends_the_answer_there(
    draft: str, generate: Generate, attention_pair: Pair, tmp_path: Path
) -> None:
    (tmp_path / "g.gbnf").write_text('root ::= "abc" "\\x00"')
    outcome = generate("p", *models(attention_pair, draft), "--grammar", tmp_path / "g.gbnf", "-k", 8)
    assert (outcome.code, outcome.out) == (2, "abc")
    assert outcome.err.startswith("error: the grammar allows no token here\nhint: ")


@pytest.mark.parametrize("draft", ["none", "lookup", "model"])
def test_a_whole_answer_ends_even_where_every_end_is_banned(
    draft: str, generate: Generate, attention_pair: Pair, tmp_path: Path
) -> None:
    (tmp_path / "g.gbnf").write_text('root ::= "abc"')
    bans = [option for token in (257, 258) for option in ("--logit-bias", f"{token}=-inf")]
    outcome = generate("p", *models(attention_pair, draft), "--grammar", tmp_path / "g.gbnf", *bans, "--json")
    assert (outcome.code, outcome.json["text"], outcome.json["finish_reason"]) == (0, "abc", "stop")


@pytest.mark.parametrize("rule", RULES)
def test_a_bias_bans_and_forces_tokens_by_text_and_by_id(rule: str, generate: Generate, tmp_path: Path) -> None:
    common = ("A", "--raw", "-m", looping(tmp_path), "-d", looping(tmp_path), "-n", 60, "--rule", rule, "-s", 1)
    banned = generate(*common, "--temperature", 2, "--logit-bias", "A=-inf", "--logit-bias", "67=-inf", "--json").json
    assert set(banned["text"]) <= {"B", "D"}
    assert banned["settings"]["logit_bias"] == {"65": None, "67": None}
    assert generate(*common, "--logit-bias", "C=10000").out == "C" * 60


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        ("AB=1", '"AB" is 2 tokens, not one: "A" (65), "B" (66)'),
        ("259=1", "there is no token 259: the vocabulary has 259"),
    ],
)
def test_a_bias_for_what_is_not_one_token_is_exit_2(
    bias: str, message: str, generate: Generate, tmp_path: Path
) -> None:
    outcome = generate("A", "-m", looping(tmp_path), "--logit-bias", bias)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {message}\nhint: ")


def test_bans_that_leave_nothing_are_exit_2(generate: Generate, tmp_path: Path) -> None:
    bans = [word for token in range(259) for word in ("--logit-bias", f"{token}=-inf")]
    outcome = generate("A", "--raw", "-m", looping(tmp_path), "-d", "none", *bans)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: --logit-bias bans every token that the model can say\n")


def test_a_model_file_brings_its_own_sampling_and_says_so(generate: Generate, tmp_path: Path) -> None:
    path = looping(tmp_path, temp=0.0, penalty_repeat=1.5, top_k=20)
    arguments = ("A", "--raw", "-m", path, "-d", "none", "-n", 12, "--stats")
    by_itself = generate(*arguments)
    assert by_itself.out == greedy_text(SamplingChain(0, repeat_penalty=1.5), b"A", 12, LOOPING)
    told = by_itself.err.partition(" · its own sampling: ")[2].partition(" · ")[0]
    assert sorted(told.split(", ")) == ["repeat_penalty 1.5", "temperature 0", "top_k 20"]
    overridden = generate(*arguments, "--repeat-penalty", 1, "--top-k", 0)
    assert overridden.out == "A" * 12
    assert " · its own sampling: temperature 0 · seed " in overridden.err
    settings = generate(*arguments, "--min-p", 0.2, "--json").json["settings"]
    assert settings.items() >= {"temperature": 0, "repeat_penalty": 1.5, "top_k": 20, "min_p": 0.2}.items()


def test_what_a_model_file_brings_and_is_of_no_use_is_one_note_each(generate: Generate, tmp_path: Path) -> None:
    path = looping(tmp_path, mirostat=2, temp=-1.0, sequence="top_k;magic")
    outcome = generate("A", "--raw", "-m", path, "-d", "none", "-n", 3)
    assert (outcome.code, len(outcome.out)) == (0, 3)
    notes = outcome.err.splitlines()
    assert len(notes) == 3
    assert all(note.startswith("note: the target's ") and "ignored" in note for note in notes)


def test_only_the_targets_recommendations_count(generate: Generate, tmp_path: Path) -> None:
    target = looping(tmp_path)
    (tmp_path / "draft").mkdir()
    draft = looping(tmp_path / "draft", temp=0.0, mirostat=1)
    outcome = generate("A", "--raw", "-m", target, "-d", draft, "-n", 3, "--json")
    assert outcome.err == ""
    assert outcome.json["settings"]["temperature"] == 0.8


def test_the_settings_repeat_all_that_decides_about_the_text(generate: Generate, attention_pair: Pair) -> None:
    options: dict[str, Any] = {
        "rule": "token",
        "typical_p": 0.9,
        "top_n_sigma": 2.0,
        "xtc_probability": 0.25,
        "xtc_threshold": 0.2,
        "repeat_last_n": 32,
        "repeat_penalty": 1.1,
        "presence_penalty": 0.1,
        "frequency_penalty": -0.1,
        "dry_multiplier": 0.8,
        "dry_base": 2.0,
        "dry_allowed_length": 3,
        "dry_penalty_last_n": 16,
    }
    flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    answer = generate("p", *models(attention_pair, "model"), "-n", 12, *flags, "--samplers", "penalties;dry", "--json")
    settings = answer.json["settings"]
    assert settings.items() >= options.items()
    assert settings["samplers"] == ["penalties", "dry"]
    assert (settings["grammar"], settings["draft_temperature"], settings["logit_bias"]) == (None, "auto", {})
    assert generate("p", *models(attention_pair, "none"), "-n", 1, "--json").json["settings"]["samplers"] == [
        *DEFAULT_ORDER
    ]


@pytest.mark.parametrize("heat", ["auto", "same", "0", "2.5"])
def test_a_draft_temperature_changes_no_greedy_text(heat: str, generate: Generate, attention_pair: Pair) -> None:
    arguments = ("p", "-n", 20, "--temperature", 0)
    plain = generate(*arguments, *models(attention_pair, "none"))
    drafted = generate(*arguments, *models(attention_pair, "model"), "--draft-temperature", heat, "--json").json
    assert drafted["text"] == plain.out
    assert drafted["settings"]["draft_temperature"] == heat


@pytest.mark.parametrize("samplers", ["temperature", "min_p"])
def test_the_same_temperature_makes_the_draft_its_own_twin(
    samplers: str, generate: Generate, attention_pair: Pair
) -> None:
    twins = ("-m", attention_pair.target, "-d", attention_pair.target, "--temperature", 2.5)
    common = ("p", *twins, "-n", 30, "--rule", "token", "--samplers", samplers, "--json")
    same = generate(*common, "--draft-temperature", "same").json["stats"]
    assert same["alpha"] == 1
    assert same["expected_alpha"] == pytest.approx(1, abs=1e-3)
    assert generate(*common, "--draft-temperature", 0.5).json["stats"]["expected_alpha"] < 0.99


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("draft", ["none", "lookup", "model"])
def test_log_probabilities_are_told_of_every_token_and_of_the_best(
    draft: str, rule: str, generate: Generate, tmp_path: Path
) -> None:
    path = looping(tmp_path)
    pair = ("-m", path, "-d", path if draft == "model" else draft)
    common = ("A", "--raw", *pair, "-n", 30, "--rule", rule, "-s", 3, "--temperature", 2, "--top-p", 1, "--min-p", 0)
    answer = generate(*common, "--top-k", 2, "--logprobs", 3, "--json").json
    assert "".join(each["text"] for each in answer["logprobs"]) == answer["text"]
    assert len(answer["logprobs"]) == answer["tokens"] == 30
    before = A
    for told in answer["logprobs"]:
        row = LOOPING[before]
        whole = math.log(sum(math.exp(logit) for logit in row.values()))
        ranked = sorted(row, key=lambda token: -row[token])
        kept = math.log(sum(math.exp(row[token] / 2) for token in ranked[:2]))
        assert [each["token"] for each in told["best"]][: len(ranked)] == ranked[:3]
        for each in (told, *told["best"]):
            token = each["token"]
            assert each["bytes"] == [token]
            if token in row:
                assert each["logprob"] == pytest.approx(row[token] - whole, abs=1e-5)
            expected = pytest.approx(row[token] / 2 - kept, abs=1e-5) if token in ranked[:2] else None
            assert each["chain_logprob"] == expected
        before = told["token"]


def test_log_probabilities_without_alternatives_and_none_at_all(generate: Generate, tmp_path: Path) -> None:
    common = ("A", "--raw", "-m", looping(tmp_path), "-n", 5, "--json")
    assert [each["best"] for each in generate(*common, "--logprobs", 0).json["logprobs"]] == [[]] * 5
    assert "logprobs" not in generate(*common).json


@pytest.mark.parametrize("draft_tokens", [0, 1, 8])
@pytest.mark.parametrize("ending", ["stop", "end", "length"])
def test_what_is_cut_off_has_no_log_probability(
    ending: str, draft_tokens: int, generate: Generate, tmp_path: Path
) -> None:
    table = {token: {token + 1: 0.0} for token in range(A, A + 8)} | {A + 8: {EOS: 0.0}}
    path = memoryless_toy(table, {A: 0.0}).write(tmp_path / "alphabet.gguf")
    how = {"stop": ("--stop", "EF"), "end": (), "length": ("-n", 6)}[ending]
    answer = generate("z", "--raw", "-m", path, "-d", path, "-k", draft_tokens, *how, "--logprobs", 1, "--json").json
    assert answer["text"] == {"stop": "ABCD", "end": "ABCDEFGHI", "length": "ABCDEF"}[ending]
    told = "".join(each["text"] for each in answer["logprobs"])
    assert told == {"stop": "ABCDEF"}.get(ending, answer["text"])
    assert len(told) == answer["tokens"]
    assert {each["logprob"] for each in answer["logprobs"]} == {0.0}


def test_a_model_that_never_says_a_token_gives_it_no_number(generate: Generate, tmp_path: Path) -> None:
    outcome = generate("A", "--raw", "-m", looping(tmp_path), "-n", 2, "--temperature", 0, "--logprobs", 4, "--json")
    answer = outcome.json
    assert [each["chain_logprob"] for each in answer["logprobs"][0]["best"]] == [0.0, None, None, None]


def test_a_temperature_of_0_gives_one_text_whatever_the_rule_and_the_draft(
    generate: Generate, attention_pair: Pair
) -> None:
    texts = {
        generate("p", *models(attention_pair, draft), "--temperature", 0, "-n", 30, "--rule", rule, "-k", 3).out
        for draft in ("none", "lookup", "model")
        for rule in RULES
    }
    assert len(texts) == 1


def test_samplers_that_are_not_named_are_off(generate: Generate, tmp_path: Path) -> None:
    common = ("A", "--raw", "-m", looping(tmp_path), "-n", 60, "-s", 2)
    assert generate(*common, "--temperature", 0, "--samplers", "top_k").out != "A" * 60
    assert generate(*common, "--top-k", 1, "--samplers", "temperature").out != "A" * 60
    assert generate(*common, "--top-k", 1, "--samplers", "temp;top-k").out == "A" * 60
