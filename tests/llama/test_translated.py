"""A draft whose vocabulary is another one, on the real engine: toys that say the same by other ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from specdec_cli.core.decode import Drafter, Model
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.translation import Translator
from specdec_cli.core.verify import RULES
from specdec_cli.drafters.translated import TranslatedDrafter
from specdec_cli.llama.context import Context
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.vocabulary import Ends, Overlap, Vocabulary, find_overlap
from tests.core.reference import chain_law
from tests.engine import GREEDY, UNFILTERED, decode, loaded, opened
from tests.statistical import emitted, follows
from tests.toy_gguf import EOS, FIRST_EXTRA, TURN_END, Toy, attention_toy, memoryless_toy
from tests.wrong_samplers import Sampler

EURO = "€".encode()
EXTRA = (b"th", EURO, EURO[:2], b"\n\n")
"""What only the target has as one token, characters and halves of them."""
PROMPT = [*b"one ", FIRST_EXTRA, FIRST_EXTRA + 1, TURN_END, FIRST_EXTRA + 2, EURO[2], *b" two"]


def shuffled(toy: Toy, *, keep: int, seed: int = 5) -> Toy:
    """The model of `toy` with only its first `keep` tokens, in another order; its ends keep their names."""
    order = np.random.default_rng(seed).permutation(keep)
    tensors = dict(toy.tensors) | {name: toy.tensors[name][order] for name in ("token_embd.weight", "output.weight")}
    place = {int(token): at for at, token in enumerate(order)}
    tokens, kinds = tuple(toy.tokens[token] for token in order), tuple(toy.kinds[token] for token in order)
    ends = {"tokenizer.ggml.bos_token_id": place[256], "tokenizer.ggml.eos_token_id": place[EOS]}
    return replace(toy, tensors=tensors, tokens=tokens, kinds=kinds).having(ends)


def overlap_of(target: Toy, draft: Toy) -> Overlap:
    """As if both had been read from their files."""
    both = (
        Vocabulary("toy.gguf", "gpt2", [token.encode() for token in toy.tokens], None, None, toy.kinds)
        for toy in (target, draft)
    )
    return find_overlap(*both)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two open models, what their vocabularies share, and the two functions that go between them."""

    target: Context
    draft: Context
    overlap: Overlap
    translator: Translator
    size: int

    def sampler(self, rule: str = "token") -> Sampler:
        """`rule` with the translated drafter."""

        def propose(model: Model, chain: SamplingChain, *, vocabulary: int, capacity: int) -> Drafter:
            return TranslatedDrafter(
                model,
                chain,
                self.translator,
                to_target=self.overlap.to_target,
                vocabulary=self.size,
                capacity=capacity,
            )

        return Sampler(RULES[rule], propose)


@contextmanager
def pair_of(folder: Path, target: Toy, draft: Toy) -> Iterator[Pair]:
    paths = target.write(folder / "target.gguf"), draft.write(folder / "draft.gguf")
    with loaded(paths[0]) as ours, loaded(paths[1]) as theirs, opened(paths[0]) as big, opened(paths[1]) as small:
        one, other = Tokenizer(ours), Tokenizer(theirs)
        overlap = overlap_of(target, draft)
        overlap = overlap.with_ends(Ends(one.eos, one.eos), Ends(other.eos, other.eos))
        translator = Translator(
            overlap.to_draft,
            overlap.byte_tokens,
            overlap.names,
            one.piece,
            lambda text: other.encode(text.decode()),
        )
        yield Pair(big, small, overlap, translator, len(target.tokens))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    toy = attention_toy(3.0, extra=EXTRA)
    with pair_of(tmp_path_factory.mktemp("translated"), toy, shuffled(toy, keep=FIRST_EXTRA)) as opened_pair:
        yield opened_pair


def test_the_greedy_text_is_that_of_the_target_alone(pair: Pair) -> None:
    wanted = emitted(decode(pair.target, None, PROMPT))
    rounds = decode(pair.target, pair.draft, PROMPT, sampler=pair.sampler())
    assert emitted(rounds) == wanted
    assert any(token >= FIRST_EXTRA for token in wanted), "the text has tokens that the draft does not know"
    assert any(token < FIRST_EXTRA for token in wanted)
    assert {round_.source for round_ in rounds} == {"model"}


def test_the_draft_reads_the_same_text(pair: Pair) -> None:
    read = [token for step in pair.translator.at_once(PROMPT) for token in step[1]]
    one_by_one = [token for step in pair.translator.one_by_one(PROMPT) for token in step[1]]
    assert read == one_by_one, "this toy has no longer tokens than bytes"
    spelled = [pair.overlap.to_target[token] for token in read]
    halves = [*EURO[:2], EURO[2]]
    assert spelled == [*b"one th", *EURO, TURN_END, *halves, *b" two"]


def test_the_same_model_under_other_ids_is_always_kept(tmp_path: Path) -> None:
    toy = attention_toy(3.0)
    with pair_of(tmp_path, toy, shuffled(toy, keep=FIRST_EXTRA)) as same:
        greedy = decode(same.target, same.draft, [*b"some text"], sampler=same.sampler(), chain=GREEDY)
        sampled = decode(same.target, same.draft, [*b"some text"], sampler=same.sampler(), chain=UNFILTERED)
    assert all(round_.accepted == round_.drafted for round_ in greedy)
    assert min(overlap for round_ in sampled for overlap in round_.overlaps) == pytest.approx(1, abs=1e-3)


P = {97: 1.0, 98: 0.6, 99: 0.1, FIRST_EXTRA: 0.8, FIRST_EXTRA + 1: -0.4, EOS: 0.3}
Q = {97: 0.2, 98: 1.1, 99: 0.9, 120: 2.0, EOS: 0.5}


@pytest.mark.parametrize("rule", RULES)
def test_frequencies_are_those_of_the_target(tmp_path: Path, rule: str) -> None:
    target, draft = memoryless_toy({}, P, extra=EXTRA), shuffled(memoryless_toy({}, Q), keep=FIRST_EXTRA)
    chain = replace(UNFILTERED, temperature=0.8, min_p=0.01)
    with pair_of(tmp_path, target, draft) as both:
        sampler = both.sampler(rule)
        texts = [
            decode(both.target, both.draft, [1], chain=chain, draft_tokens=3, budget=200, seed=seed, sampler=sampler)
            for seed in range(10)
        ]
        both.target.rewind(0)
        law = chain_law(chain, both.target.extend([1], rows=1)[0])
    assert follows([token for rounds in texts for token in emitted(rounds)], law)
    assert sum(round_.accepted for rounds in texts for round_ in rounds) > 200
