"""What the sampling options take, and how they refuse the rest: before anything loads."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.cli import run
from specdec_cli.commands.sampling_options import to_given
from specdec_cli.core import verify
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.order import DEFAULT_ORDER
from specdec_cli.core.sampling.ranges import COUNTS, RANGES
from specdec_cli.errors import UsageError
from specdec_cli.limits import DEFAULT_RULE, RULES

Capture = pytest.CaptureFixture[str]
MOST = 2**31 - 1

REFUSED = [
    ("--temperature", "100.5", "is not in 0..100"),
    ("--draft-temperature", "-0.1", "is not in 0..100"),
    ("--draft-temperature", "nan", "is not in 0..100"),
    ("--draft-temperature", "warm", "is not a number"),
    ("--top-k", "-1", f"is not in 0..{MOST}"),
    ("--min-p", "1.01", "is not in 0..1"),
    ("--typical-p", "-1", "is not in 0..1"),
    ("--typical-p", "1.5", "is not in 0..1"),
    ("--top-n-sigma", "-1", "is not in 0..100"),
    ("--top-n-sigma", "inf", "is not in 0..100"),
    ("--xtc-probability", "2", "is not in 0..1"),
    ("--xtc-threshold", "-0.5", "is not in 0..1"),
    ("--xtc-threshold", "half", "is not a number"),
    ("--repeat-penalty", "0", "is not in 0.01..100"),
    ("--repeat-penalty", "-1.1", "is not in 0.01..100"),
    ("--presence-penalty", "101", "is not in -100..100"),
    ("--frequency-penalty", "-inf", "is not in -100..100"),
    ("--repeat-last-n", "-2", f"is not in -1..{MOST}"),
    ("--repeat-last-n", "6.5", "is not a whole number"),
    ("--dry-multiplier", "-1", "is not in 0..100"),
    ("--dry-base", "0.5", "is not in 1..100"),
    ("--dry-allowed-length", "-1", f"is not in 0..{MOST}"),
    ("--dry-penalty-last-n", "-2", f"is not in -1..{MOST}"),
    ("--logprobs", "-1", "is not in 0..1000"),
    ("--logprobs", "1001", "is not in 0..1000"),
    ("--logprobs", "some", "is not a whole number"),
    ("--rule", "greedy", "is not one of token, block, coupled"),
    ("--rule", "Block", "is not one of token, block, coupled"),
    ("--logit-bias", "A", "is not TOKEN=X"),
    ("--logit-bias", "A=", "is not TOKEN=X"),
    ("--logit-bias", "=1", "is not TOKEN=X"),
    ("--logit-bias", "A=much", "is not TOKEN=X"),
    ("--logit-bias", "A=nan", "is not TOKEN=X"),
    ("--logit-bias", "A=inf", "is not in -10000..10000"),
    ("--logit-bias", "A=-10001", "is not in -10000..10000"),
]


def refusal(capsys: Capture, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[str, str]:
    """The error and the hint of a command line that is refused, with nothing on stdout."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert run(["generate", "PROMPT", "-m", "/no/such/model.gguf", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    error, hint = err.splitlines()
    return error.removeprefix("error: "), hint.removeprefix("hint: ")


@pytest.mark.parametrize(("option", "value", "reason"), REFUSED)
def test_a_value_out_of_its_range_is_repeated_with_the_range(
    option: str, value: str, reason: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, hint = refusal(capsys, monkeypatch, option, value, "--json")
    assert error == f"{option} {value} {reason}"
    assert hint


@pytest.mark.parametrize("names", ["top_k;magic", "magic", "top_k,,temperature", "edskypmxt"])
def test_an_unknown_sampler_gets_the_list_of_all(names: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    error, hint = refusal(capsys, monkeypatch, "--samplers", names)
    unknown = "" if ",," in names else names.rpartition(";")[2]
    assert error == f'no sampler is named "{unknown}"'
    assert hint == f"there are {', '.join(DEFAULT_ORDER)}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--samplers", "temp;temperature"), "the sampler temperature is named twice"),
        (("--grammar", "a.gbnf", "--json-schema", "{}"), "--grammar and --json-schema both say what to follow"),
        (("--logprobs", "3"), "--logprobs needs --json"),
    ],
)
def test_what_contradicts_itself_is_refused(
    arguments: tuple[str, ...], message: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal(capsys, monkeypatch, *arguments)[0].startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"root ::= \xff", "is not UTF-8: invalid start byte at byte 9"),
    ],
)
def test_a_grammar_that_cannot_be_read_is_told_before_a_model_is_looked_for(
    content: bytes | None, message: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "g.gbnf"
    if content is not None:
        path.write_bytes(content)
    assert refusal(capsys, monkeypatch, "--grammar", str(path))[0] == f"grammar {path} {message}"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{"type": "object"', "the schema of --json-schema is not JSON: "),
        ("{'type': 'object'}", "the schema of --json-schema is not JSON: "),
        ('{"$ref": "#/nowhere"}', "the schema of --json-schema cannot be converted: "),
        ("/no/such/schema.json", "schema /no/such/schema.json cannot be read: No such file or directory"),
        ("", "--json-schema needs some text"),
    ],
)
def test_a_schema_that_makes_no_grammar_is_told_before_a_model_is_looked_for(
    schema: str, message: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal(capsys, monkeypatch, "--json-schema", schema)[0].startswith(message)


def given(**options: Any) -> dict[str, Any]:
    return to_given(**{"samplers": None, "logit_bias": None, **options})


@pytest.mark.parametrize(
    ("text", "bias"),
    [
        ("A=1", ("A", 1.0)),
        ("A=+1.5", ("A", 1.5)),
        (" hello=-inf", (" hello", -math.inf)),
        ("15043=-100", ("15043", -100.0)),
        ("==2", ("=", 2.0)),
        ("a=b=-1e3", ("a=b", -1000.0)),
        ("\n=10000", ("\n", 10000.0)),
    ],
)
def test_a_bias_is_parted_at_its_last_equals_sign(text: str, bias: tuple[str, float]) -> None:
    assert given(logit_bias=[text, "B=0"]) == {"logit_bias": (bias, ("B", 0.0))}


def test_only_what_is_said_is_given() -> None:
    assert given(temperature=None, top_k=None) == {}
    assert given(temperature=0.0, top_k=0) == {"temperature": 0.0, "top_k": 0}


@pytest.mark.parametrize(
    ("text", "samplers"),
    [("", ()), ("top-k;temp", ("top_k", "temperature")), (" Top_K , MINP ", ("top_k", "min_p"))],
)
def test_samplers_are_named_in_the_order_that_they_act_in(text: str, samplers: tuple[str, ...]) -> None:
    assert given(samplers=text) == {"samplers": samplers}


def chain_of(name: str, value: Any) -> SamplingChain:
    return SamplingChain(**{name: value})


@pytest.mark.parametrize("name", [*RANGES, *COUNTS])
def test_every_option_of_the_chain_refuses_what_the_chain_refuses_and_takes_what_it_takes(
    name: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    low, high = RANGES[name][:2] if name in RANGES else (0, MOST)
    flag = f"--{name.replace('_', '-')}"
    for value in (low, high):
        chain_of(name, value)
        error, _ = refusal(capsys, monkeypatch, flag, str(value), "--rule", "none")
        assert error.startswith("--rule none"), "the number itself is taken"
    with pytest.raises(UsageError, match=flag):
        chain_of(name, low - 2)
    assert refusal(capsys, monkeypatch, flag, str(low - 2))[0].startswith(f"{flag} {low - 2} is not in ")


def test_the_command_line_knows_every_rule_and_one_default() -> None:
    assert tuple(verify.RULES) == RULES
    assert DEFAULT_RULE in RULES
