"""What theory reads from the file of a bench, and what it refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.bench.reading import read_observed
from specdec_cli.bench.writing import to_json
from specdec_cli.core.costs import Costs
from specdec_cli.errors import UsageError
from tests.bench.answers import COSTS, plain_rounds, report, round_of, sample, three_ways

LOOKUP = Costs(COSTS.target)


def bench(path: Path, *, temperature: float = 0.0) -> Path:
    """γ = 2 and 4 with 20 rounds each."""
    kept, missed = [round_of(4, 4)] * 10, [round_of(4, 0)] * 10
    samples = [
        sample("code", 0, plain_rounds(10), 1.0, temperature=temperature),
        sample("code", 2, [round_of(2, 2)] * 15 + [round_of(2, 1)] * 5, 4.0, temperature=temperature),
        sample("code", 4, kept + missed, 4.0, temperature=temperature),
        sample("code", "auto", [round_of(3, 3)] * 50, 1.0, temperature=temperature),
    ]
    path.write_text(to_json(report(samples)), "utf-8")
    return path


def changed(path: Path, change: Callable[[Any], object]) -> Path:
    whole = json.loads(path.read_text("utf-8"))
    change(whole)
    path.write_text(json.dumps(whole), "utf-8")
    return path


def test_alpha_is_that_of_all_fixed_lengths_together(tmp_path: Path) -> None:
    (observed,) = read_observed(bench(tmp_path / "bench.json"), pytest.fail)
    assert observed.name == "temperature 0"
    assert observed.alpha == pytest.approx((35 + 40) / (40 + 50))
    assert observed.alphas == pytest.approx((30 / 40, 25 / 30, 1, 1))
    assert (observed.step, observed.share) == (0.1, 1)
    assert observed.passes == pytest.approx(COSTS.target)
    assert observed.speed_ups == pytest.approx({2: 55 / 40, 4: 60 / 40})


def test_places_that_were_hardly_examined_do_not_count(tmp_path: Path) -> None:
    samples = three_ways("code", (1, 1))
    path = tmp_path / "bench.json"
    path.write_text(to_json(report(samples)), "utf-8")
    assert read_observed(path, pytest.fail)[0].alphas == ()


def test_a_free_draft_that_was_not_always_there_has_its_share(tmp_path: Path) -> None:
    rounds = [round_of(2, 1, source="lookup")] * 10 + plain_rounds(30)
    samples = [sample("code", 0, plain_rounds(10), 1.0), sample("code", 2, rounds, 4.0)]
    path = tmp_path / "bench.json"
    path.write_text(to_json(report(samples, costs=LOOKUP)), "utf-8")
    (observed,) = read_observed(path, pytest.fail)
    assert (observed.share, observed.step) == (0.25, 0)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda whole: whole.pop("type"), "is neither a bench nor a trace"),
        (lambda whole: whole.update(schema=2), "has schema 2, and this specdec reads 1"),
        (lambda whole: whole.pop("costs"), "is damaged: there is no 'costs'"),
        (lambda whole: whole["costs"].update(target=[]), "is damaged"),
        (lambda whole: whole["costs"].update(target=[0.0, 1.0]), "is damaged"),
        (lambda whole: whole["costs"].update(target=[1.0, float("nan")]), "is damaged: nan is no time"),
        (lambda whole: whole["cells"][1].update(accepted=10**9), "is no share"),
        (lambda whole: whole["cells"][1].update(c=float("inf")), "is damaged"),
        (lambda whole: whole["cells"][1].update(examined_at="x"), "is damaged"),
        (lambda whole: whole.update(cells=3), "is damaged"),
        (lambda whole: whole.update(cells=[]), "nothing was drafted"),
    ],
)
def test_a_damaged_bench_is_one_line(tmp_path: Path, change: Callable[[Any], object], complaint: str) -> None:
    path = changed(bench(tmp_path / "bench.json"), change)
    with pytest.raises(UsageError) as caught:
        read_observed(path, pytest.fail)
    assert complaint in caught.value.message


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 10_000, b"{}", b"1"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is neither a bench nor a trace"):
        read_observed(path, pytest.fail)


def test_a_file_that_is_not_there_and_a_folder_are_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path, Path("a\0b")):
        with pytest.raises(UsageError, match="cannot be read"):
            read_observed(path, pytest.fail)


def test_a_bench_may_come_through_a_pipe(tmp_path: Path) -> None:
    path = bench(tmp_path / "bench.json")
    reading, writing = os.pipe()
    os.write(writing, path.read_bytes())
    os.close(writing)
    assert read_observed(Path(f"/dev/fd/{reading}"), pytest.fail) == read_observed(path, pytest.fail)
    os.close(reading)


HEADER = {
    "type": "answer",
    "schema": 1,
    "specdec": "0",
    "target": "t",
    "draft": "lookup",
    "rule": "block",
    "seed": 1,
    "turn": 0,
} | {
    "prompt_tokens": 1,
    "vocabulary": 9,
    "sampling": {},
    "draft_temperature": "auto",
    "label": None,
}


def trace(path: Path, *answers: str, costs: Any = None) -> Path:
    """Answers of a length and rounds, such as "1l--" or "auto--": in l lookup has a token that is kept, in - none."""
    token = {"token": 1, "text": "a"}
    kept = {"confidence": 1, "q": 1, "q_entropy": 0, "decision": "accepted", "probability": 1, "draw": None}
    seen = {"p": 1, "ratio": 1, "overlap": 1, "p_entropy": 0, "top": []}
    lines: list[dict[str, Any]] = []
    for answer in answers:
        rounds = answer.lstrip("01auto")
        length = answer.removesuffix(rounds)
        costs = costs or {"target": [1.0, 1.5], "drafts": {}}
        lines.append(HEADER | {"draft_tokens": length if length == "auto" else int(length), "costs": costs})
        lines += [
            {"type": "round", "round": index, "place": 1, "drafter": "lookup", "last": None, "ended": False}
            | {"drafted": [token | kept | seen] if each == "l" else [], "controller": None}
            | {"emitted": [token | {"kind": "accepted" if each == "l" else "bonus"}]}
            | {"seconds": {"draft": 0, "verify": 1, "sample": 0}}
            for index, each in enumerate(rounds)
        ]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return path


def test_a_trace_tells_in_which_share_of_its_rounds_a_free_draft_was_there(tmp_path: Path) -> None:
    (observed,) = read_observed(trace(tmp_path / "trace", "0---", "1l--l", "autol----"), pytest.fail)
    assert (observed.name, observed.share) == ("answers of a fixed length", 0.5)
    assert (observed.step, observed.passes) == (0, (1.0, 1.5))
    costs = {"target": [1.0, 1.5], "drafts": {"model": [0.1]}}
    (observed,) = read_observed(trace(tmp_path / "trace", "1l--l", costs=costs), pytest.fail)
    assert observed.share == 1, "a draft model is always there"


def test_auto_alone_does_not_tell_where_a_draft_was_there(tmp_path: Path) -> None:
    (observed,) = read_observed(trace(tmp_path / "trace", "autol----"), pytest.fail)
    assert (observed.name, observed.share, observed.alpha) == ("all answers", 1, 1)
    rounds = [round_of(2, 1, source="lookup")] * 10 + plain_rounds(30)
    samples = [sample("code", 0, plain_rounds(10), 1.0), sample("code", "auto", rounds, 4.0)]
    path = tmp_path / "bench.json"
    path.write_text(to_json(report(samples, costs=LOOKUP)), "utf-8")
    assert read_observed(path, pytest.fail)[0].share == 1


@pytest.mark.parametrize("target", [[5e-324, 1.0], [1.0, 2.0**62]])
def test_a_trace_with_costs_that_nobody_can_have_measured_is_one_line(tmp_path: Path, target: list[float]) -> None:
    path = trace(tmp_path / "trace", "1l", costs={"target": target, "drafts": {}})
    with pytest.raises(UsageError, match=r"is damaged: .* is no time"):
        read_observed(path, pytest.fail)
