"""The JSON and the CSV of a bench, which programs and `specdec theory` read."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from specdec_cli.bench.writing import to_csv, to_json
from tests.bench.answers import report, three_ways


def written() -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not strict JSON")

    text = to_json(report(three_ways("code", (1.5, 2.0)) + three_ways("prose", (0.9, 1.0))))
    assert text.count("\n") == 1
    return json.loads(text, parse_constant=refuse)


def test_the_object_says_what_it_is_and_holds_all_that_repeats_it() -> None:
    bench = written()
    assert (bench["type"], bench["schema"], bench["pair"]) == ("bench", 1, "mine")
    assert bench["target"] == {
        "path": "/models/big.gguf",
        "description": "llama 1B F16",
        "bytes": 2_000_000_000,
        "backend": "CPU",
    }
    assert bench["settings"]["draft_tokens"] == [0, 2, "auto"]
    assert bench["settings"].items() >= {"rule": "block", "seed": 5, "max_tokens": 64, "raw": False}.items()
    assert bench["settings"].items() >= {"threads": 2, "draft_threads": 1, "lora": [["a.gguf", 0.5]]}.items()
    assert bench["answers"] == {"planned": 6, "done": 6, "stopped": None, "error": None}
    assert bench["costs"]["v"][:3] == [1.0, 1.2, 1.4]
    assert bench["costs"]["c"] == {"model": 0.1}
    assert bench["machine"].keys() == {"cpu", "cores", "system", "python", "llama_cpp_python", "specdec"}
    assert bench["memory"] == {"peak": 3_000_000_000, "weights": 2_200_000_000, "caches": 100_000_000}
    assert bench["verdict"].startswith("auto is ")


def test_a_cell_holds_counts_rates_and_both_predictions() -> None:
    cells = {(each["prompts"], each["draft_tokens"]): each for each in written()["cells"]}
    assert list(cells) == [(kind, length) for kind in ("code", "prose", "all") for length in (0, 2, "auto")]
    cell = cells["code", 2]
    assert (cell["drafted"], cell["accepted"], cell["examined"], cell["rounds"]) == (6, 3, 5, 3)
    assert cell["alpha"] == pytest.approx(0.6)
    assert (cell["accepted_at"], cell["examined_at"]) == ([2, 1], [3, 2])
    assert cell["speed_up"]["median"] == pytest.approx(1.5)
    assert cell["predicted"] == pytest.approx((1 + 0.6 + 0.36) * 3 / (1.6 + (1.4 + 0.15 + 0.1) + 1.6), rel=1e-3)
    assert cell["classic"] == pytest.approx((1 + 0.6 + 0.36) / 1.2, rel=1e-3)
    assert (cell["c"], cell["v"]) == (0.1, 1.4)
    assert sum(cell["shares"].values()) == pytest.approx(1)
    plain = cells["code", 0]
    assert (plain["speed_up"], plain["predicted"], plain["alpha"], plain["c"]) == (None, None, None, None)


def test_the_csv_has_a_row_for_each_cell_and_one_name_for_each_number() -> None:
    samples = three_ways("code, mine", (1.5, 2.0))
    rows = list(csv.DictReader(io.StringIO(to_csv(report(samples)))))
    assert [row["draft_tokens"] for row in rows] == ["0", "2", "auto"]
    assert rows[1]["prompts"] == "code, mine"
    assert float(rows[1]["speed_up_median"]) == pytest.approx(1.5)
    assert rows[0]["speed_up_median"] == rows[0]["alpha"] == ""
    assert set(rows[0]) >= {"tokens_per_second_median", "predicted", "classic", "shares_draft", "c", "v"}
