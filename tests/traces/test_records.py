"""What a trace says of the rounds of real answers is what decided on them, whatever the rule, and however they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.core.verify import RULES, Kind
from specdec_cli.generation import Grammar
from specdec_cli.limits import DraftTokens
from specdec_cli.traces.summary import summarise, to_round
from specdec_cli.traces.trace import Drafted
from tests.engine import GREEDY, answer
from tests.toy_gguf import BOS, EOS, FIRST_EXTRA, memoryless_toy
from tests.traces.traced import Traced, traced

LENGTHS: tuple[DraftTokens, ...] = (0, 3, "auto")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answer.trace"


def says(folder: Path, *pieces: bytes, name: str = "says") -> Pair:
    """A pair of one toy twice, which says `pieces`, a token each, and then ends."""
    extra = [piece for piece in pieces if len(piece) > 1]
    tokens = [piece[0] if len(piece) == 1 else FIRST_EXTRA + extra.index(piece) for piece in pieces]
    table = {token: {following: 1.0} for token, following in zip(tokens, [*tokens[1:], EOS], strict=True)}
    toy = memoryless_toy(table, {tokens[0]: 1.0}, extra=extra)
    return Pair(toy.write(folder / f"{name}.gguf"), toy.write(folder / f"{name}-draft.gguf"))


def near(value: float | None) -> Any:
    """As near as six digits come."""
    return None if value is None else pytest.approx(value, rel=1e-5)


def counted(found: Traced) -> Any:
    """What the file comes to, as `core.stats` counts it."""
    return summarise(found.rounds).counters


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rule", RULES)
def test_an_answer_is_the_same_with_a_trace(attention_pair: Pair, path: Path, rule: str, length: DraftTokens) -> None:
    request: dict[str, Any] = {"rule": rule, "draft_tokens": length, "max_tokens": 40}
    found = traced(attention_pair, path, **request)
    assert found.text == answer(attention_pair, chain=found.generation.request.chain, **request).text


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rule", RULES)
def test_a_trace_counts_what_the_statistics_count(
    attention_pair: Pair, path: Path, rule: str, length: DraftTokens
) -> None:
    found = traced(attention_pair, path, rule=rule, draft_tokens=length, max_tokens=60)
    theirs, ours = found.generation.counters, counted(found)
    assert ours.overlap == pytest.approx(theirs.overlap, rel=1e-5)
    ours.overlap = theirs.overlap
    assert ours == theirs
    assert found.answer.end is not None
    assert found.answer.end.stats["drafted"] == theirs.drafted
    assert [to_round(each).tokens for each in found.rounds] == [each.tokens for each in found.generation.rounds]
    assert [to_round(each).kinds for each in found.rounds] == [each.kinds for each in found.generation.rounds]


@pytest.mark.parametrize("rule", RULES)
def test_each_drafted_token_comes_with_what_decided_on_it(attention_pair: Pair, path: Path, rule: str) -> None:
    found = traced(attention_pair, path, rule=rule, max_tokens=80)
    decided = set()
    for step, round_ in zip(found.steps, found.rounds, strict=True):
        assert [each.token.id for each in round_.drafted] == list(step.proposal.tokens)
        for position, drafted in enumerate(round_.drafted):
            q, token = step.proposal.distributions[position], drafted.token.id
            assert drafted.q == pytest.approx(q.at(token), rel=1e-5)
            made = step.decisions.get(position)
            assert drafted.probability == (made and near(made.probability))
            assert drafted.draw == (made and near(made.draw))
            assert (drafted.examined is not None) == (drafted.decision in ("accepted", "rejected"))
            if drafted.examined is not None:
                p = step.targets[position]
                assert drafted.examined.p == pytest.approx(p.at(token), rel=1e-5)
                assert drafted.examined.overlap == pytest.approx(p.overlap(q), rel=1e-5)
                assert drafted.examined.ratio == pytest.approx(p.at(token) / q.at(token), rel=1e-5)
                likeliest = {each.id: (each.p, each.q) for each in drafted.examined.top}
                assert all(pair == pytest.approx((p.at(i), q.at(i)), rel=1e-5) for i, pair in likeliest.items())
                assert 8 <= len(likeliest) <= 17
                assert token in likeliest
                assert max(range(259), key=p.at) in likeliest
                assert max(range(259), key=q.at) in likeliest
            decided.add(drafted.decision)
    assert decided == {"accepted", "rejected", "unexamined"}


@pytest.mark.parametrize("rule", RULES)
def test_the_own_token_of_a_round_comes_with_the_law_that_it_was_drawn_from(
    attention_pair: Pair, path: Path, rule: str
) -> None:
    found = traced(attention_pair, path, rule=rule, max_tokens=60)
    for step, round_ in zip(found.steps, found.rounds, strict=True):
        assert round_.last is not None
        assert step.emission is not None
        assert round_.last.kind is step.round.last
        assert (round_.last.draw is None) == (rule == "coupled")
        chances = [each.probability for each in round_.last.law]
        assert chances == pytest.approx([step.emission.law.at(each.id) for each in round_.last.law], rel=1e-5)
        assert chances == sorted(chances, reverse=True)
        assert step.round.tokens[-1] in [each.id for each in round_.last.law]


def test_the_controller_says_what_it_expected(attention_pair: Pair, path: Path) -> None:
    found = traced(attention_pair, path, draft_tokens="auto", max_tokens=40)
    for step, round_ in zip(found.steps, found.rounds, strict=True):
        assert step.outlook is not None
        assert round_.outlook is not None
        assert round_.outlook.tokens == pytest.approx(step.outlook.tokens, rel=1e-5)
        assert round_.outlook.gain == pytest.approx(step.outlook.gain, rel=1e-3, abs=1e-4)
        assert len(round_.outlook.kept) == len(round_.drafted)
    assert found.answer.header.costs is not None


def test_greedy_laws_are_one_token_each(attention_pair: Pair, path: Path) -> None:
    found = traced(attention_pair, path, chain=GREEDY, max_tokens=20)
    examined = [each.examined for round_ in found.rounds for each in round_.drafted if each.examined is not None]
    assert examined
    assert {(each.p, each.ratio, each.p_entropy, len(each.top)) for each in examined} == {(1.0, 1.0, 0.0, 1)}


def test_plain_decoding_drafts_nothing_and_names_no_draft(attention_pair: Pair, path: Path) -> None:
    found = traced(attention_pair, path, draft_tokens=0, max_tokens=5)
    header = found.answer.header
    assert (header.draft, header.draft_tokens, header.prompt_tokens) == (None, 0, 1)
    assert header.target.startswith(attention_pair.target.name)
    assert all(not each.drafted and each.emitted[0].kind is Kind.BONUS for each in found.rounds)
    assert [each.place for each in found.rounds] == [1, 2, 3, 4, 5]


def decisions(found: Traced) -> list[str]:
    return [drafted.decision for round_ in found.rounds for drafted in round_.drafted]


def last_drafted(found: Traced) -> Drafted:
    return found.rounds[-1].drafted[-1]


def test_an_end_that_was_drafted_is_cut_with_what_follows_it(tmp_path: Path, path: Path) -> None:
    found = traced(says(tmp_path, b"A", b"B", b"C"), path, chain=GREEDY, draft_tokens=8)
    assert found.text == "ABC"
    assert decisions(found) == ["accepted", "accepted", "accepted", "cut"]
    assert (last_drafted(found).token.id, last_drafted(found).token.text) == (EOS, "<|endoftext|>")
    assert found.rounds[-1].ended
    assert found.rounds[-1].last is None
    assert counted(found) == found.generation.counters


def test_an_end_that_the_target_draws_itself_shows_its_law(tmp_path: Path, path: Path) -> None:
    found = traced(says(tmp_path, b"A", b"B", b"C"), path, chain=GREEDY, draft_tokens=3)
    last = found.rounds[-1].last
    assert found.rounds[-1].ended
    assert last is not None
    assert [(each.id, each.text, each.probability) for each in last.law] == [(EOS, "<|endoftext|>", 1.0)]
    assert EOS not in [each.token.id for each in found.rounds[-1].emitted]


def test_a_stop_string_cuts_the_block_that_it_is_in(tmp_path: Path, path: Path) -> None:
    pair = says(tmp_path, b"1 ", b"2 ", b"3 ", b"4 ", b"5 ", b"6 ")
    found = traced(pair, path, chain=GREEDY, draft_tokens=8, stops=("3 ",))
    assert found.text == "1 2 "
    assert decisions(found) == ["accepted"] * 3 + ["cut"] * 4
    assert [each.token.text for each in found.rounds[0].emitted] == ["1 ", "2 ", "3 "]
    assert counted(found) == found.generation.counters
    assert found.answer.end is not None
    assert found.answer.end.finish_reason == "stop"


def test_tokens_that_are_parts_of_a_character_keep_their_bytes(tmp_path: Path, path: Path) -> None:
    found = traced(says(tmp_path, b"a", b"\xe2", b"\x82", b"\xac", b"\xff", "é".encode()), path, chain=GREEDY)
    tokens = [each.token for round_ in found.rounds for each in round_.emitted]
    assert [each.text for each in tokens] == ["a", "�", "�", "�", "�", "é"]
    assert b"".join(each.data for each in tokens) == b"a\xe2\x82\xac\xff" + "é".encode()
    assert found.text == "a€�é"
    assert '"text":"é"' in path.read_text("utf-8")


def test_a_control_token_prints_nothing_and_has_a_name(tmp_path: Path, path: Path) -> None:
    table = {97: {BOS: 1.0}, BOS: {98: 1.0}, 98: {EOS: 1.0}}
    toy = memoryless_toy(table, {97: 1.0})
    pair = Pair(toy.write(tmp_path / "target.gguf"), toy.write(tmp_path / "draft.gguf"))
    found = traced(pair, path, chain=GREEDY)
    assert found.text == "ab"
    assert [each.token.text for round_ in found.rounds for each in round_.emitted] == ["a", "", "b"]
    assert [each.token.text for each in found.rounds[0].drafted] == ["a", "<|bos|>", "b", "<|endoftext|>"]


def test_a_grammar_that_is_through_leaves_no_token_to_name(tmp_path: Path, path: Path) -> None:
    pair = says(tmp_path, b"a", b"b", b"c")
    grammar = Grammar('root ::= "ab"', "the test's")
    found = traced(pair, path, chain=GREEDY, draft_tokens=8, grammar=grammar)
    assert found.text == "ab"
    assert counted(found) == found.generation.counters
    assert all(each.id < 300 for round_ in found.rounds if round_.last for each in round_.last.law)


def test_a_draft_that_is_outvoted_is_rejected_and_the_rest_unexamined(bad_draft_pair: Pair, path: Path) -> None:
    found = traced(bad_draft_pair, path, chain=GREEDY, max_tokens=20)
    for round_ in found.rounds:
        kinds = [each.decision for each in round_.drafted]
        assert kinds == sorted(kinds, key=["accepted", "rejected", "unexamined"].index)
        assert kinds.count("rejected") <= 1
    assert "rejected" in decisions(found)


def test_every_field_of_a_trace_is_documented(attention_pair: Pair, path: Path) -> None:
    traced(attention_pair, path, max_tokens=20, draft_tokens="auto")
    guide = (Path(__file__).parents[2] / "docs" / "trace.md").read_text("utf-8")
    free = {"sampling", "stats", "drafts", "label"}

    def names(value: Any) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(names, value))
        if not isinstance(value, dict):
            return set()
        return set(value).union(*(names(each) for name, each in value.items() if name not in free))

    used = set().union(*(names(json.loads(line)) for line in path.read_text("utf-8").splitlines()))
    assert "gain" in used
    assert {name for name in used if f"`{name}`" not in guide and f'"{name}"' not in guide} == set()
