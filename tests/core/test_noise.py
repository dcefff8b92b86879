from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.noise import Noise, Purpose
from tests.statistical import follows

SEEDS = [0, 1, 2**32, 2**53 - 1, 2**64 - 1]
EVEN = Distribution.of(np.ones(1000))


def test_every_seed_round_purpose_and_position_has_a_number_of_its_own() -> None:
    keys = product(SEEDS, (0, 1, 2, 2**40), Purpose, (0, 1, 2, 600))
    numbers = [Noise(seed).round(index, 0).uniform(purpose, position) for seed, index, purpose, position in keys]
    assert len(set(numbers)) == len(numbers) == 240


@pytest.mark.parametrize("seed", SEEDS)
def test_a_number_depends_on_nothing_but_its_key(seed: int) -> None:
    forwards = [Noise(seed).round(index, 0).uniform(Purpose.ACCEPT, 3) for index in range(20)]
    noise = Noise(seed)
    backwards = []
    for index in reversed(range(20)):
        noise.round(index, 0).draft(0, EVEN)
        backwards.append(noise.round(index, 0).uniform(Purpose.ACCEPT, 3))
    assert forwards == backwards[::-1]


def test_the_numbers_of_a_seed_never_change_between_versions() -> None:
    told = [Noise(42).round(7, 0).uniform(purpose, 2) for purpose in Purpose]
    assert told == [0.617589650209717, 0.9709919753879414, 0.2238555823001267]


def test_numbers_have_53_bits_and_stay_below_one() -> None:
    numbers = [Noise(3).round(index, 0).uniform(Purpose.EMIT, 0) for index in range(500)]
    assert all(0 <= number < 1 and number * 2**53 == int(number * 2**53) for number in numbers)
    assert sum(int(number * 2**53) % 2 for number in numbers) in range(180, 320)


@pytest.mark.parametrize("along", ["seed", "round", "position"])
@pytest.mark.parametrize("purpose", Purpose)
def test_numbers_are_uniform_along_every_part_of_their_key(along: str, purpose: Purpose) -> None:
    def number(step: int) -> float:
        seed, index, position = (step if along == part else 5 for part in ("seed", "round", "position"))
        return Noise(seed).round(index, 0).uniform(purpose, position)

    cells = [int(number(step) * 8) for step in range(3000)]
    assert follows(cells, dict.fromkeys(range(8), 1 / 8))


@pytest.mark.parametrize("shift", ["seed", "round", "position"])
def test_neighbouring_numbers_are_independent(shift: str) -> None:
    def pair(step: int) -> tuple[int, int]:
        base, moved = {"seed": 1, "round": step, "position": 1}, {"seed": 1, "round": step, "position": 1}
        moved[shift] += 1
        numbers = (Noise(k["seed"]).round(k["round"], 0).uniform(Purpose.DRAFT, k["position"]) for k in (base, moved))
        first, second = (int(number * 3) for number in numbers)
        return first, second

    pairs = [pair(2 * step) for step in range(3000)]
    assert follows(pairs, dict.fromkeys(product(range(3), range(3)), 1 / 9))


def test_a_certain_token_is_kept_and_an_impossible_one_is_not() -> None:
    rounds = [Noise(1).round(index, 0) for index in range(200)]
    assert all(chance.accept(0, 1.0) and not chance.accept(0, 0.0) for chance in rounds)


def test_acceptance_happens_as_often_as_it_should() -> None:
    kept = [Noise(1).round(index, 0).accept(4, 0.3) for index in range(3000)]
    assert follows(kept, {True: 0.3, False: 0.7})


def test_draft_and_emission_use_the_number_of_their_purpose() -> None:
    chance = Noise(9).round(4, 0)
    assert chance.draft(2, EVEN) == EVEN.draw(chance.uniform(Purpose.DRAFT, 2))
    assert chance.emit(0, EVEN) == EVEN.draw(chance.uniform(Purpose.EMIT, 0))
