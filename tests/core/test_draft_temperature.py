"""The draft may be as hot as it likes: only q changes, never the text's distribution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specdec_cli.core.draft_temperature import SHARE, to_draft_chain
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.order import DEFAULT_ORDER
from specdec_cli.core.stats import Counters
from specdec_cli.core.verify import RULES
from specdec_cli.drafters.model import ModelDrafter
from tests.core.reference import plain_law
from tests.core.test_exactness import EXACT, HISTORY_CHAINS
from tests.enumeration import Loop, Luck, SharedPaths, fresh, text_law, total_variation
from tests.loops import GREEDY, IN_FLOAT64, UNFILTERED, plain, speculative
from tests.statistical import emitted
from tests.toys import LogitsOf, by_context

LUCK: dict[str, Luck] = {"token": fresh, "block": fresh, "coupled": SharedPaths}
P, Q = by_context(1, 3), by_context(2, 3)
WITHOUT_IT = tuple(name for name in DEFAULT_ORDER if name != "temperature")
ROW = np.array([3, 2, 1, 0, -1], np.float32)


def at_heat(target: LogitsOf, draft: LogitsOf, chain: SamplingChain, heat: str, *, rule: str, length: int) -> Loop:
    """The loop with a draft at its own temperature."""

    def propose(model, chain, **room):  # type: ignore[no-untyped-def]
        return ModelDrafter(model, to_draft_chain(chain, heat), **room)

    return speculative(target, draft, chain, enough=length, rule=RULES[rule], propose=propose)


@pytest.mark.parametrize("heat", ["auto", "same", "0", "0.3", "2.5", "100"])
@pytest.mark.parametrize("rule", RULES)
def test_every_draft_temperature_is_exact_with_every_rule(rule: str, heat: str) -> None:
    loop = at_heat(P, Q, replace(IN_FLOAT64, temperature=0.8), heat, rule=rule, length=2)
    law = plain_law(P, replace(IN_FLOAT64, temperature=0.8), (0,), 3)
    assert total_variation(text_law(loop, (0,), 3, LUCK[rule]), law) <= EXACT


@pytest.mark.parametrize("chain", ["penalties", "another order", "xtc greedy"])
def test_it_goes_with_samplers_that_look_back_or_strike_by_chance(chain: str) -> None:
    loop = at_heat(P, Q, HISTORY_CHAINS[chain], "1.7", rule="block", length=2)
    law = plain_law(P, HISTORY_CHAINS[chain], (0, 1), 3)
    assert total_variation(text_law(loop, (0, 1), 3), law) <= EXACT


def test_a_greedy_text_stays_the_same_whatever_the_draft_draws() -> None:
    noise = RULES["block"].noise(1)
    told = emitted(at_heat(P, Q, GREEDY, "3", rule="block", length=3)((0,), 30, noise))
    assert told == emitted(plain(P, GREEDY)((0,), 30, noise))


@pytest.mark.parametrize("temperature", [0, 1e-4, 0.5, 1, 100])
def test_by_itself_it_is_a_fixed_share_of_the_targets(temperature: float) -> None:
    chain = SamplingChain(temperature)
    assert to_draft_chain(chain) == replace(chain, temperature=0.85 * temperature)
    assert SHARE == 0.85


def test_a_greedy_target_has_a_greedy_draft_by_itself() -> None:
    assert to_draft_chain(SamplingChain(0)).greedy
    assert not to_draft_chain(SamplingChain(0), "1").greedy


@pytest.mark.parametrize("samplers", [DEFAULT_ORDER, WITHOUT_IT])
def test_the_same_is_the_targets_own_chain(samplers: tuple[str, ...]) -> None:
    chain = SamplingChain(0.5, samplers=samplers)
    assert to_draft_chain(chain, "same") == chain


def test_everything_else_stays_as_it_is_for_the_target() -> None:
    chain = HISTORY_CHAINS["another order"]
    assert to_draft_chain(chain, "0.5") == replace(chain, temperature=0.5)


def test_a_chain_without_the_sampler_gets_it_only_where_a_temperature_is_given() -> None:
    chain = replace(UNFILTERED, temperature=0.3, samplers=WITHOUT_IT)
    hot = replace(UNFILTERED, temperature=2)
    for token in range(5):
        p, auto = chain.distribution(ROW), to_draft_chain(chain, "auto").distribution(ROW)
        assert auto.at(token) == p.at(token), "without the sampler no temperature acts on the target either"
        assert to_draft_chain(chain, "2").distribution(ROW).at(token) == hot.distribution(ROW).at(token)


def test_a_draft_that_is_surer_than_the_target_fits_it_better_when_it_is_hotter() -> None:
    def overlap(heat: str) -> float:
        target, sure = by_context(3, 8), by_context(3, 8)
        counters = Counters()
        loop = at_heat(target, lambda context: 3 * sure(context), UNFILTERED, heat, rule="token", length=3)
        for round_ in loop((0,), 200, RULES["token"].noise(1)):
            counters.add(round_)
        assert counters.expected_alpha is not None
        return counters.expected_alpha

    assert overlap("auto") < overlap("same") < overlap("2") < overlap("3")
    assert overlap("3") == pytest.approx(1, abs=1e-6)
