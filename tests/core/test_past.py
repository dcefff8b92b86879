"""What came before a position: it never changes, and a grammar that goes with it restricts every rule exactly."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from specdec_cli.core.decode import Drafter, Round, StopRule, autoregress, speculate
from specdec_cli.core.distribution import Ids
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Chance, ChanceSource
from specdec_cli.core.past import Mask, Past
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.verify import RULES, Proposal
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.drafters.model import ModelDrafter
from tests.core.reference import plain_law
from tests.core.test_exactness import EXACT, HISTORY_CHAINS
from tests.enumeration import Luck, SharedPaths, Text, fresh, text_law, total_variation
from tests.loops import GREEDY, IN_FLOAT64, UNFILTERED, drafter_of
from tests.statistical import emitted
from tests.toys import ScriptedDrafter, TableModel, by_context, by_last_token

Edges = Sequence[Mapping[int, int]]
"""For each state the tokens that may come, and the state that each leads to."""


class Automaton:
    """A grammar of its own: a `Mask` that refuses to be asked where no text could have come."""

    def __init__(self, edges: Edges, state: int = 0) -> None:
        self._edges = edges
        self._state = state
        self.asked: list[int] = []

    def allowed(self, ids: Ids) -> npt.NDArray[np.bool_]:
        return np.isin(ids, list(self._edges[self._state]))

    @property
    def may_end(self) -> bool:
        return False

    def after(self, token: int) -> Automaton:
        self.asked.append(token)
        return Automaton(self._edges, self._edges[self._state][token])


NO_TWO_OF_2: Final[Edges] = ({0: 0, 1: 0, 2: 1}, {0: 0, 1: 0})
"""Never 2 twice in a row."""
CYCLE: Final[Edges] = ({0: 1, 1: 2}, {1: 2, 2: 0}, {0: 0, 2: 1})
"""Each state allows two other tokens."""
FORCED: Final[Edges] = ({1: 1}, {0: 2, 2: 2}, {2: 0})
"""Two of three tokens could be no other."""
GRAMMARS = {"no two of 2": NO_TWO_OF_2, "a cycle": CYCLE, "nearly forced": FORCED}
LUCK: dict[str, Luck] = {"token": fresh, "block": fresh, "coupled": SharedPaths}
P, Q = by_context(22, 3, spread=2), by_context(522, 3, spread=2)
PROMPT = (0, 1, 0, 1)


def test_a_past_is_never_changed_by_what_follows_it() -> None:
    past = Past([1, 2], window=3, mask=Automaton(CYCLE))
    followed = past.followed_by(0).followed_by(2)
    assert (past.tokens, followed.tokens) == ((1, 2), (2, 0, 2))
    assert past.mask is not None
    assert past.mask.allowed(np.arange(3)).tolist() == [True, True, False]


@pytest.mark.parametrize("window", [0, 1, 3, 9])
def test_a_past_holds_the_last_tokens_and_no_more(window: int) -> None:
    text, past = [5, 6], Past([5, 6], window=window)
    for token in (7, 8, 9, 8):
        past, text = past.followed_by(token), [*text, token]
        assert past.tokens == tuple(text[-window:] if window else [])


def test_a_past_that_nothing_depends_on_stays_the_same() -> None:
    past = Past([1, 2])
    assert past.followed_by(3) is past


@pytest.mark.parametrize("mask", [None, Automaton(CYCLE)])
def test_draft_and_target_walk_the_same_pasts(mask: Mask | None) -> None:
    past = Past([1], window=2, mask=mask)
    assert past.followed_by(0).followed_by(1) is past.followed_by(0).followed_by(1)
    assert past.followed_by(0) is not past.followed_by(1)


def test_a_mask_is_moved_once_for_each_token_and_only_by_it() -> None:
    mask = Automaton(CYCLE)
    past = Past(PROMPT, mask=mask)
    for _ in range(2):
        for token in (0, 1):
            past.followed_by(token)
    assert mask.asked == [0, 1]
    assert past.tokens == ()


def allowed_here(edges: Edges, text: Sequence[int]) -> bool:
    """Whether a grammar lets all of `text` through."""
    state = 0
    for token in text:
        if token not in edges[state]:
            return False
        state = edges[state][token]
    return True


def lookup_proposes(edges: Edges, length: int) -> tuple[int, ...]:
    context = [0, 1, 2, 2, 0, 1]
    chance = RULES["token"].noise(0).round(0, 0)
    return LookupDrafter().propose(context, Past(mask=Automaton(edges)), FixedLength(length), chance).tokens


def test_lookup_proposes_up_to_the_first_token_that_a_mask_forbids() -> None:
    assert lookup_proposes(({2: 0, 0: 0, 1: 0},), 6) == (2, 2, 0, 1, 2, 2)
    assert lookup_proposes(NO_TWO_OF_2, 6) == (2,)
    assert lookup_proposes(({2: 1}, {2: 2}, {0: 3}, {0: 0}), 6) == (2, 2, 0)
    assert lookup_proposes(({0: 0, 1: 0},), 6) == ()


class Heedless(ModelDrafter):
    """A draft model that knows of no mask."""

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        return super().propose(context, Past(past.tokens, window=past.window), enough, chance)


def drafters(chain: SamplingChain) -> dict[str, Drafter]:
    """Fresh ones of every kind, each as good as the others where it comes to being exact."""
    return {
        "model": drafter_of(TableModel(Q), chain),
        "heedless model": Heedless(TableModel(Q), chain, vocabulary=3, capacity=1 << 30),
        "lookup": LookupDrafter(),
        "heedless script": ScriptedDrafter(lambda context: [context[-1], 2, 2, 0, 1]),
    }


def masked_bias(
    name: str, edges: Edges, drafter: str, length: int, *, chain: SamplingChain = IN_FLOAT64, budget: int = 4
) -> float:
    """Total variation between the texts of the loop and those of the target alone, both under a grammar."""

    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        return speculate(
            TableModel(P),
            drafters(chain)[drafter],
            prompt,
            chain=chain,
            noise=noise,
            budget=budget,
            is_end=lambda _: False,
            enough=FixedLength(length),
            rule=RULES[name],
            mask=Automaton(edges),
        )

    law = text_law(loop, PROMPT, budget, LUCK[name])
    assert all(allowed_here(edges, text) for text in law)
    return total_variation(law, plain_law(P, chain, PROMPT, budget, mask=Automaton(edges)))


@pytest.mark.parametrize("length", [1, 2, 3, 4])
@pytest.mark.parametrize("name", RULES)
def test_a_mask_is_exact_with_every_rule_and_draft_length(name: str, length: int) -> None:
    assert masked_bias(name, CYCLE, "model", length, budget=max(length + 1, 4)) <= EXACT


@pytest.mark.parametrize("drafter", [name for name in drafters(GREEDY) if name != "model"])
@pytest.mark.parametrize("name", RULES)
def test_a_mask_is_exact_with_a_draft_that_knows_nothing_of_it(name: str, drafter: str) -> None:
    assert masked_bias(name, CYCLE, drafter, 2, budget=3) <= EXACT


@pytest.mark.parametrize("grammar", ["no two of 2", "nearly forced"])
@pytest.mark.parametrize("name", RULES)
def test_other_masks_are_exact_too(name: str, grammar: str) -> None:
    assert masked_bias(name, GRAMMARS[grammar], "model", 2, budget=3) <= EXACT


@pytest.mark.parametrize("chain", ["penalties", "top-n-sigma", "greedy with penalties"])
@pytest.mark.parametrize("name", RULES)
def test_a_mask_goes_with_samplers_that_look_back_or_filter(name: str, chain: str) -> None:
    assert masked_bias(name, NO_TWO_OF_2, "model", 2, chain=HISTORY_CHAINS[chain], budget=3) <= EXACT


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_plain_decoding_follows_a_mask(grammar: str) -> None:
    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        options: dict[str, Any] = {
            "chain": IN_FLOAT64,
            "noise": noise,
            "budget": budget,
            "mask": Automaton(GRAMMARS[grammar]),
        }
        return autoregress(TableModel(P), prompt, is_end=lambda _: False, **options)

    law = plain_law(P, IN_FLOAT64, PROMPT, 3, mask=Automaton(GRAMMARS[grammar]))
    assert total_variation(text_law(loop, PROMPT, 3), law) <= EXACT


def test_the_coupled_rule_says_the_same_under_a_mask_with_any_draft_and_none() -> None:
    rule = RULES["coupled"]
    options: dict[str, Any] = {"chain": UNFILTERED, "noise": rule.noise(4), "budget": 40, "is_end": lambda _: False}
    wanted = emitted(autoregress(TableModel(P), PROMPT, mask=Automaton(CYCLE), **options))
    for drafter in drafters(UNFILTERED).values():
        target, enough = TableModel(P), FixedLength(3)
        told = speculate(target, drafter, PROMPT, mask=Automaton(CYCLE), enough=enough, rule=rule, **options)
        assert emitted(told) == wanted


@pytest.mark.parametrize("chain", ["penalties", "dry", "greedy with penalties"])
@pytest.mark.parametrize("name", RULES)
def test_a_draft_equal_to_the_target_sees_what_it_sees_and_is_always_kept(name: str, chain: str) -> None:
    rule, law = RULES[name], HISTORY_CHAINS[chain]
    options: dict[str, Any] = {"chain": law, "noise": rule.noise(2), "budget": 60, "is_end": lambda _: False}
    twin, mask = drafter_of(TableModel(P), law), Automaton(NO_TWO_OF_2)
    rounds = list(speculate(TableModel(P), twin, PROMPT, enough=FixedLength(4), rule=rule, mask=mask, **options))
    assert len(rounds) == 12
    assert all(round_.accepted == round_.drafted == 4 for round_ in rounds)


DEAD_END: Final[Edges] = ({0: 1, 1: 2}, {}, {0: 2, 1: 2, 2: 2})
"""What may come first cannot always be followed."""


def test_a_draft_that_has_nothing_to_say_under_a_mask_leaves_the_word_to_the_target() -> None:
    target, draft = by_last_token([[-9, 9, 0]] * 3), by_last_token([[9, -9, 0]] * 3)
    options: dict[str, Any] = {"noise": RULES["block"].noise(1), "budget": 5, "is_end": lambda _: False}
    told = speculate(
        TableModel(target),
        drafter_of(TableModel(draft), UNFILTERED),
        PROMPT,
        chain=UNFILTERED,
        enough=FixedLength(3),
        mask=Automaton(DEAD_END),
        **options,
    )
    assert emitted(told) == [1] * 5


def test_a_mask_that_allows_only_tokens_unknown_to_the_draft_is_followed_without_it() -> None:
    only_3: Edges = ({0: 1}, {3: 0})
    options: dict[str, Any] = {"noise": RULES["block"].noise(1), "budget": 6, "is_end": lambda _: False}
    drafter = ModelDrafter(TableModel(by_context(1, 3)), UNFILTERED, vocabulary=3, capacity=1 << 30)
    target, mask = TableModel(by_context(1, 4)), Automaton(only_3)
    told = speculate(target, drafter, PROMPT, chain=UNFILTERED, enough=FixedLength(3), mask=mask, **options)
    assert emitted(told) == [0, 3, 0, 3, 0, 3]
