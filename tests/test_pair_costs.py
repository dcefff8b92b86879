"""Costs are kept for what they depend on, and found again where nothing of it is another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from specdec_cli import calibration
from specdec_cli.llama.devices import Device
from specdec_cli.llama.greeting import Greeting
from specdec_cli.llama.placement import Placement
from specdec_cli.pair_costs import PairCosts
from specdec_cli.placing import Plan
from specdec_cli.settings import ModelPlacing, ModelSettings, Placing

CARD = Device("CUDA0", "a card", "GPU", "CUDA", 1, 1)
SETTINGS = ModelSettings(threads=2, draft_threads=2)


def loaded(*, target: int = 3, draft: int = 0, round_trip: float = 0.001) -> Any:
    """A pair with so many of its layers on a card, and a worker that far away."""
    plan = Plan(Placement((CARD,), (target,), 3), Placement((CARD,), (draft,), 3), "")
    greeting = Greeting("far:1", (7, 0, 0), round_trip, ((1, 1),))
    return SimpleNamespace(weights=(), plan=plan, workers=SimpleNamespace(greetings=(greeting,)))


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of all that was looked for."""
    asked: list[str] = []
    monkeypatch.setattr(calibration, "load", asked.append)
    return asked


def look_for(pair: Any, settings: ModelSettings) -> None:
    PairCosts(pair, settings, lambda *_: None, lambda _: None).known()


@pytest.mark.parametrize(
    ("pair", "settings"),
    [
        (loaded(target=2), SETTINGS),
        (loaded(draft=3), SETTINGS),
        (loaded(round_trip=0.02), SETTINGS),
        (loaded(), ModelSettings(threads=1, draft_threads=2)),
        (loaded(), ModelSettings(threads=2, draft_threads=2, placing=Placing(("far:1",)))),
        (loaded(), ModelSettings(threads=2, draft_threads=2, placing=Placing(target=ModelPlacing(split_mode="row")))),
    ],
)
def test_what_changes_the_time_of_a_pass_has_costs_of_its_own(
    keys: list[str], pair: Any, settings: ModelSettings
) -> None:
    look_for(loaded(), SETTINGS)
    look_for(pair, settings)
    assert keys[0] != keys[1]


def test_the_same_again_has_the_same_costs(keys: list[str]) -> None:
    look_for(loaded(), SETTINGS)
    look_for(loaded(round_trip=0.0011), ModelSettings(threads=2, draft_threads=2, recalibrate=True))
    assert keys[0] == keys[1]
