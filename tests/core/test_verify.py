"""The token rule alone: what it emits has the law p for any p and q, and it asks for no more than it needs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_cli.core.distribution import Distribution
from specdec_cli.core.draft_length import FixedLength
from specdec_cli.core.past import Past
from specdec_cli.core.verify import Kind, Proposal, Rule, TokenRule, accept_probability, keep_probability
from tests.enumeration import Paths, law_of, support, total_variation
from tests.loops import IN_FLOAT64
from tests.toys import TableModel, by_last_token
from tests.wrong_samplers import RIGHT, WRONG, WRONG_RULES, Sampler

SIZE = 12
weight = st.one_of(st.just(0.0), st.just(1.0), st.sampled_from([1e-300, 1e-12, 1e12]), st.floats(0, 10))
many_pairs = settings(max_examples=800, deadline=None, derandomize=True, database=None)


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    """Dense or sparse in float64, of any size up to `SIZE`, zeros anywhere; one-hot now and then."""
    weights = np.array(draw(st.lists(weight, min_size=1, max_size=SIZE).filter(lambda row: sum(row) > 1e-13)))
    if draw(st.booleans()):
        return Distribution.of(weights)
    ids = draw(st.lists(st.integers(0, SIZE - 1), min_size=weights.size, max_size=weights.size, unique=True))
    return Distribution.of(weights, np.array(sorted(ids), np.intp))


def identity_error(p: Distribution, q: Distribution) -> float:
    """Largest |q·a + (1 - Σ q·a)·residual - p| over all tokens."""
    accepted = {token: probability * accept_probability(p, q, token) for token, probability in support(q)}
    residual = p.residual(q)
    rest = 1 - sum(accepted.values())
    return max(abs(accepted.get(token, 0) + rest * residual.at(token) - p.at(token)) for token in range(SIZE + 1))


def first_token_error(rule: Rule, p: Distribution, q: Distribution) -> float:
    """Total variation between p and the first token that `rule` emits of a block of one."""

    def first_token(paths: Paths) -> int:
        token = paths.draft(0, q)
        verdict = rule.verify(Proposal((token,), (q,)), lambda _: p, paths)
        return token if verdict.accepted else verdict.token

    return total_variation(law_of(first_token), dict(support(p)))


@many_pairs
@given(distributions(), distributions())
def test_accepting_and_replacing_add_up_to_p_and_the_overlap_is_the_chance_of_acceptance(
    p: Distribution, q: Distribution
) -> None:
    accepted = sum(probability * accept_probability(p, q, token) for token, probability in support(q))
    assert identity_error(p, q) <= 1e-12
    assert p.overlap(q) == pytest.approx(accepted, abs=1e-12)
    assert q.overlap(p) == pytest.approx(accepted, abs=1e-12)


@settings(many_pairs, max_examples=400)
@given(distributions(), distributions())
def test_the_first_token_of_a_round_has_the_law_p(p: Distribution, q: Distribution) -> None:
    assert first_token_error(TokenRule(), p, q) <= 1e-12


def random_distribution(rng: np.random.Generator) -> Distribution:
    """Up to `SIZE` tokens of random weights, spiky or flat, in every shape and support."""
    size = int(rng.integers(1, SIZE + 1))
    weights = rng.dirichlet(np.full(size, rng.choice([0.05, 1.0, 20.0])))
    if rng.random() < 0.1:
        return Distribution.one_hot(size - 1)
    return Distribution.of(weights, np.sort(rng.permutation(SIZE)[:size]) if rng.random() < 0.5 else None)


def test_accepting_and_replacing_add_up_to_p_on_thousands_of_random_pairs() -> None:
    rng = np.random.default_rng(8)
    pairs = [(random_distribution(rng), random_distribution(rng)) for _ in range(4000)]
    assert max(identity_error(p, q) for p, q in pairs) <= 1e-12


@pytest.mark.parametrize("sizes", [(1000, 1000), (1000, 900), (900, 1000), (5, 5)])
def test_float32_weights_keep_the_identity_within_float32_rounding(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        p, q = (Distribution.of(np.exp(rng.normal(0, 3, size)).astype(np.float32)) for size in sizes)
        accepted = np.zeros(1000)
        for token, probability in support(q):
            accepted[token] = probability * accept_probability(p, q, token)
        residual = p.residual(q)
        emitted = accepted + (1 - accepted.sum()) * np.array([residual.at(token) for token in range(1000)])
        assert np.abs(emitted - np.array([p.at(token) for token in range(1000)])).sum() < 1e-6


P = Distribution.of(np.array([0.5, 0.1, 0.3, 0.1]))
Q = Distribution.of(np.array([0.2, 0.5, 0.1, 0.2]))


@pytest.mark.parametrize("name", WRONG_RULES)
def test_each_wrong_rule_breaks_the_identity(name: str) -> None:
    assert first_token_error(WRONG_RULES[name], P, Q) > 0.01
    assert first_token_error(TokenRule(), P, Q) <= 1e-12


def first_round_error(sampler: Sampler) -> float:
    """Total variation between p and the first token of a round of `sampler`, whatever it really draws from."""
    p, q = by_last_token([[1.0, 0.2, -0.5, 0.4]] * 4), by_last_token([[0.2, 1.2, 0.3, -0.9]] * 4)
    law = IN_FLOAT64.distribution(np.array(p((0,)), np.float32))

    def first_token(paths: Paths) -> int:
        drafter = sampler.propose(TableModel(q), IN_FLOAT64, vocabulary=4, capacity=9)
        proposal = drafter.propose([0], Past(), FixedLength(1), paths)
        verdict = sampler.rule.verify(proposal, lambda _: law, paths)
        return proposal.tokens[0] if verdict.accepted else verdict.token

    return total_variation(law_of(first_token), dict(support(law)))


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_sampler_breaks_the_identity_of_its_first_token(name: str) -> None:
    assert first_round_error(WRONG[name]) > 0.01
    assert first_round_error(RIGHT) <= 1e-12


class Luck:
    """Accepts as scripted, and always emits the token of most weight."""

    def __init__(self, *accepts: bool) -> None:
        self.accepts = list(accepts)

    def draft(self, position: int, q: Distribution) -> int:
        raise AssertionError("verification drafts nothing")

    def accept(self, position: int, probability: float) -> bool:
        return self.accepts[position]

    def emit(self, position: int, p: Distribution) -> int:
        return max(support(p), key=lambda option: option[1])[0]


def test_no_target_row_after_the_first_rejection_is_asked_for() -> None:
    asked: list[int] = []

    def target(position: int) -> Distribution:
        asked.append(position)
        return P

    verdict = TokenRule().verify(Proposal((1, 1, 1), (Q, Q, Q)), target, Luck(True, False))
    assert asked == [0, 1]
    assert (verdict.accepted, verdict.kind, len(verdict.overlaps)) == (1, Kind.CORRECTION, 2)


def test_a_kept_block_is_followed_by_a_token_of_the_row_after_it() -> None:
    rows = [P, P, Distribution.one_hot(3)]
    verdict = TokenRule().verify(Proposal((1, 1), (Q, Q)), rows.__getitem__, Luck(True, True))
    assert (verdict.accepted, verdict.token, verdict.kind) == (2, 3, Kind.BONUS)


def test_a_block_without_drafts_is_one_token_of_the_target() -> None:
    verdict = TokenRule().verify(Proposal(), lambda _: Distribution.one_hot(2), Luck())
    assert (verdict.accepted, verdict.token, verdict.kind, verdict.overlaps) == (0, 2, Kind.BONUS, ())


def test_the_block_rule_keeps_all_where_draft_and_target_are_equal() -> None:
    half = Distribution.of(np.array([0.5, 0.5]))
    assert keep_probability(1, 1.0, Proposal((0, 1), (half, half)), lambda _: half) == 1


@pytest.mark.parametrize("dense", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("share", [1.0, 0.7, 0.2, 0.0])
def test_the_excess_is_what_a_share_of_p_has_beyond_q(dense: tuple[bool, bool], share: float) -> None:
    laws = [P.weights, Q.weights]
    p, q = (Distribution.of(law, None if whole else np.arange(4)) for law, whole in zip(laws, dense, strict=True))
    wanted = np.maximum(share * P.weights - Q.weights, 0)
    assert p.excess(q, share).weights == pytest.approx(wanted)
    assert p.excess(q, share).total == pytest.approx(wanted.sum())


def test_a_rejected_token_is_never_emitted() -> None:
    rejected = [token for token, _ in support(Q) if accept_probability(P, Q, token) < 1]
    residual = P.residual(Q)
    assert rejected
    assert all(residual.at(token) == 0 for token in rejected)
