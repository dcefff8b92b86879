from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import pytest

from specdec_cli.core.decode import Round, StopRule
from specdec_cli.core.distribution import Distribution
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.noise import Chance, ChanceSource, Noise
from specdec_cli.core.past import Past
from specdec_cli.core.verify import RULES, Proposal
from specdec_cli.drafters.chain import CONFIDENT, ChainDrafter, ExhaustibleDrafter
from specdec_cli.drafters.lookup import LookupDrafter, confidence
from specdec_cli.drafters.text import TextDrafter
from tests.core.reference import plain_law
from tests.enumeration import Luck, SharedPaths, Text, fresh, text_law, total_variation
from tests.loops import IN_FLOAT64, drafter_of, run
from tests.toys import TableModel, by_context

EXACT = 1e-12
CHANCE = Noise(0).round(0, 0)
P = by_context(1, 5)


class Scripted:
    """Proposes `block`, all of one confidence, and keeps a diary."""

    def __init__(self, name: str, block: Sequence[int] = (), confidence: float = 0.9, exhausted: bool = False) -> None:
        self.name = name
        self.exhausted = exhausted
        self.diary: list[tuple[str, int]] = []
        self._block = block
        self._confidence = confidence

    def prefill(self, prompt: Sequence[int]) -> None:
        self.diary.append(("prefill", len(prompt)))

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        proposal = Proposal(source=self.name)
        for token in self._block:
            if enough(proposal):
                break
            proposal = proposal.followed_by(token, Distribution.one_hot(token), self._confidence)
        self.diary.append(("propose", len(proposal.tokens)))
        return proposal

    def rewind(self, length: int) -> None:
        self.diary.append(("rewind", length))


def proposed(*drafters: ExhaustibleDrafter, enough: StopRule | None = None) -> Proposal:
    return ChainDrafter(drafters).propose((0, 1), Past(), enough or FixedLength(3), CHANCE)


SURE, UNSURE, NOTHING = ("sure", (1, 2, 3, 4), CONFIDENT), ("unsure", (5, 6, 7, 8), CONFIDENT - 0.01), ("nothing", ())


@pytest.mark.parametrize(
    ("order", "source", "tokens"),
    [
        ((SURE, UNSURE), "sure", (1, 2, 3)),
        ((UNSURE, SURE), "sure", (1, 2, 3)),
        ((NOTHING, SURE), "sure", (1, 2, 3)),
        ((NOTHING, UNSURE), "unsure", (5, 6, 7)),
        ((NOTHING, UNSURE, SURE), "sure", (1, 2, 3)),
        ((UNSURE, NOTHING), "unsure", (5,)),
        ((NOTHING, NOTHING), "nothing", ()),
        ((SURE,), "sure", (1, 2, 3)),
    ],
)
def test_the_first_that_is_sure_wins_and_the_last_need_not_be(
    order: tuple[tuple[str, tuple[int, ...], float]], source: str, tokens: Text
) -> None:
    proposal = proposed(*(Scripted(*each) for each in order))
    assert (proposal.source, proposal.tokens) == (source, tokens)


def test_who_is_unsure_drafts_no_more_than_the_token_that_shows_it() -> None:
    unsure, sure, idle = Scripted(*UNSURE), Scripted(*SURE), Scripted("idle", (1,))
    proposed(unsure, sure, idle)
    assert (unsure.diary, sure.diary, idle.diary) == ([("propose", 1)], [("propose", 3)], [])


def test_the_stop_rule_hears_of_each_drafter_that_is_asked_before_it_drafts() -> None:
    heard: list[tuple[str, int]] = []

    def enough(proposal: Proposal) -> bool:
        heard.append((proposal.source, len(proposal.tokens)))
        return proposal.source == "sure" or len(proposal.tokens) >= 2

    proposal = proposed(Scripted(*SURE), Scripted("last", (8, 8, 8)), enough=enough)
    assert (proposal.source, proposal.tokens) == ("last", (8, 8))
    assert heard == [("sure", 0), ("last", 0), ("last", 1), ("last", 2)]


def test_all_are_kept_in_step() -> None:
    drafters = [Scripted(*SURE), Scripted(*UNSURE)]
    chain = ChainDrafter(drafters)
    chain.prefill((1, 2, 3))
    chain.rewind(2)
    assert [drafter.diary for drafter in drafters] == [[("prefill", 3), ("rewind", 2)]] * 2


def test_its_name_lists_them_and_it_says_when_one_has_come_to_its_end() -> None:
    assert ChainDrafter([Scripted("lookup"), Scripted("model")]).name == "lookup,model"
    assert not ChainDrafter([Scripted("lookup"), Scripted("model")]).exhausted
    assert ChainDrafter([Scripted("lookup"), Scripted("model", exhausted=True)]).exhausted


def test_a_lookup_match_of_three_tokens_is_what_it_takes() -> None:
    assert confidence(2) < CONFIDENT <= confidence(3)
    for length, source in ((2, "model"), (3, "lookup")):
        context = [*range(length), 9, 8, *range(length)]
        proposal = ChainDrafter([LookupDrafter(), Scripted("model", (1,))]).propose(
            context, Past(), FixedLength(3), CHANCE
        )
        assert proposal.source == source


def test_a_model_that_did_not_draft_for_a_while_catches_up_in_one_batch() -> None:
    small = TableModel(P)
    phrase, new = [0, 1, 2, 3, 4, 2, 0], [3, 1]
    prompt = [*phrase, *new, *phrase]
    chain = ChainDrafter([LookupDrafter(), drafter_of(small)])
    chain.prefill(prompt)
    first = chain.propose(prompt, Past(), FixedLength(2), CHANCE)
    assert (first.source, first.tokens) == ("lookup", tuple(new))
    context = [*prompt, *new, 4, 4]
    chain.rewind(len(context) - 1)
    assert chain.propose(context, Past(), FixedLength(2), CHANCE).source == "model"
    assert small.calls == [(len(prompt) - 1, 0), (1 + len(new) + 2, 1), (1, 1)]
    assert small.tokens[: len(context)] == context


LUCK: dict[str, Luck] = {"token": fresh, "block": fresh, "coupled": SharedPaths}
TARGET, DRAFT = by_context(2, 3), by_context(5, 3)
PROMPT = (0, 1, 1, 0, 1, 0, 2, 0, 1, 1, 0, 1)
Links = Callable[[], list[ExhaustibleDrafter]]
CHAINS: dict[str, Links] = {
    "lookup,model": lambda: [LookupDrafter(), drafter_of(TableModel(DRAFT), IN_FLOAT64)],
    "model,lookup": lambda: [drafter_of(TableModel(DRAFT), IN_FLOAT64), LookupDrafter()],
    "text,lookup,model": lambda: [
        TextDrafter((1, 0, 2, 2, 0, 1)),
        LookupDrafter(),
        drafter_of(TableModel(DRAFT), IN_FLOAT64),
    ],
    "model,model": lambda: [drafter_of(TableModel(by_context(seed, 3)), IN_FLOAT64) for seed in (5, 6)],
}


def bias(
    links: Links, rule: str, *, chain: type[ChainDrafter] = ChainDrafter, length: int = 2
) -> tuple[float, set[str]]:
    """Total variation between the texts of the loop and those of the target, and who drafted."""
    sources: set[str] = set()

    def loop(prompt: Text, budget: int, noise: ChanceSource) -> Generator[Round, None, None]:
        drafter = chain(links())
        drafter.prefill(prompt)
        rounds = run(
            TableModel(TARGET),
            drafter,
            prompt,
            chain=IN_FLOAT64,
            noise=noise,
            budget=budget,
            enough=length,
            ends={2},
            rule=RULES[rule],
        )
        for round_ in rounds:
            sources.add(round_.source)
            yield round_

    found = text_law(loop, PROMPT, 4, LUCK[rule])
    return total_variation(found, plain_law(TARGET, IN_FLOAT64, PROMPT, 4, {2})), sources


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_gives_the_law_of_the_target_under_every_rule(name: str, rule: str) -> None:
    far, sources = bias(CHAINS[name], rule)
    assert far <= EXACT
    assert sources == set(name.split(","))


class JudgingChain(ChainDrafter):
    """Passes on to the next when the token that was drawn looks weak. This is wrong."""

    def propose(self, context: Sequence[int], past: Past, enough: StopRule, chance: Chance) -> Proposal:
        first, second = self._drafters
        proposal = first.propose(context, past, enough, chance)
        if proposal.tokens and proposal.distributions[0].at(proposal.tokens[0]) >= CONFIDENT:
            return proposal
        return second.propose(context, past, enough, chance)


@pytest.mark.parametrize("rule", ["token", "block"])
def test_a_chain_that_judges_by_the_token_that_was_drawn_is_biased(rule: str) -> None:
    assert bias(CHAINS["model,lookup"], rule, chain=JudgingChain)[0] > 1e-3


def test_a_seed_gives_the_coupled_text_whoever_drafts() -> None:
    texts = set()
    for links in CHAINS.values():
        rule = RULES["coupled"]
        rounds = run(
            TableModel(TARGET), ChainDrafter(links()), PROMPT, chain=IN_FLOAT64, noise=rule.noise(7), rule=rule
        )
        texts.add(tuple(token for round_ in rounds for token in round_.tokens))
    assert len(texts) == 1
