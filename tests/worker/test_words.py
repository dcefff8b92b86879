"""What a worker says."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli.worker.messages import Ready
from specdec_cli.worker.plan import Plan
from specdec_cli.worker.tensor_cache import Checked
from specdec_cli.worker.words import checked, left, serving

PLAN = Plan("127.0.0.1", 7, ("CPU", "CUDA0"), None, caches=True, verbose=False)


def test_it_says_what_is_served_and_where_with_a_line_for_each_device() -> None:
    ready = Ready(("CPU: a", "CUDA0: b"), 8)
    assert list(serving(PLAN, ready, "7.0.0", Path("kept"))) == [
        "serving at 127.0.0.1:7, protocol 7.0.0, 8 threads, cache kept",
        "  CPU: a",
        "  CUDA0: b",
    ]


def test_a_protocol_that_ggml_has_not_told_is_left_out() -> None:
    assert next(serving(PLAN, Ready((), 1), None, None)) == "serving at 127.0.0.1:7, 1 thread, no cache"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1.4, "1 s"), (59.6, "1 min 0 s"), (61, "1 min 1 s"), (3599, "59 min 59 s"), (7320, "2 h 2 min")],
)
def test_how_long_a_client_stayed_is_said_in_two_units_at_most(seconds: float, words: str) -> None:
    assert left(seconds) == f"the client has left after {words}"


def test_what_was_kept_and_what_was_deleted_is_said_once() -> None:
    assert checked(Checked(1, 2 * 10**9, 0)) == "1 tensor of 2.00 GB checked and kept in the cache"
    assert checked(Checked(0, 0, 2)).startswith("2 tensors deleted from the cache, not whole")
    both = checked(Checked(3, 10**9, 1))
    assert both.startswith("3 tensors of 1.00 GB checked and kept in the cache; 1 tensor deleted")


def test_a_plan_survives_its_way_to_the_process_that_serves() -> None:
    assert Plan.from_text(PLAN.to_text()) == PLAN
