from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from specdec_cli.core.sampling.dry import dry_penalties
from specdec_cli.errors import EXIT_USAGE, UsageError
from specdec_cli.llama.library import llama
from specdec_cli.llama.token_texts import LONGEST_BREAKER, TokenTexts
from tests.engine import loaded
from tests.toy_gguf import BOS, EOS, FIRST_EXTRA, TURN_END, Toy, attention_toy

EXTRA = (b"ab", b"xy.", b"-" * 300, "é".encode(), b" a", "\N{REPLACEMENT CHARACTER}".encode(), b"\xa9b")
AB, XY, LONG, E_ACUTE, BLANK_A, REPLACEMENT, OTHER_HALF = range(FIRST_EXTRA, FIRST_EXTRA + len(EXTRA))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenTexts]:
    path = attention_toy(extra=EXTRA).write(tmp_path_factory.mktemp("texts") / "model.gguf")
    with loaded(path) as weights:
        yield TokenTexts(weights)


def _sentencepiece(*, pieces: tuple[str, ...]) -> Toy:
    """A toy with a tokenizer that puts a blank before a text; byte tokens first, then `pieces`."""
    toy = attention_toy(extra=[b"?"] * len(pieces))
    for byte in range(256):
        toy = toy.spelling(byte, f"<0x{byte:02X}>")
    for at, piece in enumerate(pieces):
        toy = toy.spelling(FIRST_EXTRA + at, piece)
    count = len(toy.tokens)
    kinds = (gguf.TokenType.BYTE,) * 256 + toy.kinds[256:]
    scores = {"tokenizer.ggml.scores": [float(-index) for index in range(count)]}
    spm = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.add_space_prefix": True, "tokenizer.ggml.merges": None}
    unknown = {"tokenizer.ggml.unknown_token_id": 0}
    return Toy(toy.tensors, toy.tokens, kinds, {**toy.metadata, **spm, **scores, **unknown})


def test_every_token_is_spelled_out_control_tokens_too(texts: TokenTexts) -> None:
    control = [b"<|bos|>", b"<|endoftext|>", b"<|im_end|>"]
    assert texts.pieces == [*(bytes([byte]) for byte in range(256)), *control, *EXTRA]
    assert texts.alone == texts.pieces


def test_alone_a_token_loses_the_blank_that_its_tokenizer_puts_first(tmp_path: Path) -> None:
    with loaded(_sentencepiece(pieces=("▁", "▁hi", "hi")).write(tmp_path / "model.gguf")) as weights:
        texts = TokenTexts(weights)
        assert texts.pieces[FIRST_EXTRA:] == [b" ", b" hi", b"hi"]
        assert texts.alone[FIRST_EXTRA:] == [b"", b"hi", b"hi"]
        assert FIRST_EXTRA + 1 not in texts.breakers([" "]), "as llama.cpp resolves them"


def test_beginnings_are_whole_characters(texts: TokenTexts) -> None:
    (one, first), (two, first_two) = texts.by_beginning
    assert {texts.pieces[token] for token in one} == {
        *(bytes([byte]) for byte in range(128)),
        "é".encode(),
    }
    assert [texts.pieces[token] for token in two] == [b"ab", b" a"]
    assert texts.pieces[one[first[AB]]] == b"a"
    assert texts.pieces[one[first[LONG]]] == b"-"
    assert two[first_two[BLANK_A]] == BLANK_A
    for token in (OTHER_HALF, 0xC3, EOS, TURN_END):
        assert first[token] == one.size, "half a character and an end begin with none"
    assert first_two[ord("a")] == two.size


def test_a_token_that_holds_a_breaker_breaks_by_itself(texts: TokenTexts) -> None:
    assert texts.breakers([".", "\n"]) == {ord("."): ((),), XY: ((),), ord("\n"): ((),)}


def test_a_token_that_ends_with_its_beginning_breaks_with_the_rest(texts: TokenTexts) -> None:
    assert texts.breakers(["abc"]) == {
        ord("a"): (tuple(b"bc"),),
        BLANK_A: (tuple(b"bc"),),
        AB: ((ord("c"),),),
    }


def test_a_token_that_ends_in_two_ways_with_it_breaks_in_both(texts: TokenTexts) -> None:
    found = texts.breakers(["---x", "--"])
    assert found[LONG] == ((ord("x"),), (ord("-"), ord("x")), (ord("-"), ord("-"), ord("x")), ())
    assert found[ord("-")] == ((ord("-"), ord("-"), ord("x")), (ord("-"),))


def test_long_breakers_and_tails_are_cut_and_empty_ones_skipped(texts: TokenTexts) -> None:
    assert texts.breakers([""]) == {}
    assert texts.breakers(["z" + "q" * 60])[ord("z")] == ((ord("q"),) * 20,)
    assert texts.breakers(["-" * LONGEST_BREAKER + "x"])[LONG] == ((),)


def _llama_penalties(texts: TokenTexts, breaker: str, history: list[int]) -> dict[int, float]:
    """What llama.cpp's own DRY takes off each logit after `history`."""
    library = llama()
    strings = (ctypes.c_char_p * 1)(breaker.encode())
    sampler = library.llama_sampler_init_dry(texts._vocab, 1.0, 1.5, 1, 64, strings, 1)
    for token in history:
        library.llama_sampler_accept(sampler, token)
    row = np.zeros(texts.size, [("id", np.int32), ("logit", np.float32), ("p", np.float32)])
    row["id"] = np.arange(texts.size)
    data = row.ctypes.data_as(library.llama_token_data_p)
    array = library.llama_token_data_array(data=data, size=texts.size, selected=-1, sorted=False)
    library.llama_sampler_apply(sampler, ctypes.byref(array))
    library.llama_sampler_free(sampler)
    return {int(token): -float(row["logit"][token]) for token in np.flatnonzero(row["logit"])}


@pytest.mark.parametrize("breaker", ["a", "abc", "é", ".", "--", " ab", "-b", "bb"])
def test_breakers_end_repetitions_where_llama_cpp_ends_them(texts: TokenTexts, breaker: str) -> None:
    generator, breakers = np.random.default_rng(5), texts.breakers([breaker])
    tokens = sorted({ord("q"), *breakers, *(token for tails in breakers.values() for tail in tails for token in tail)})
    seen = 0
    for _ in range(300):
        history = [int(token) for token in generator.choice(generator.choice(tokens, 4), 32)]
        ours = dry_penalties(history, multiplier=1.0, base=1.5, allowed=1, breakers=breakers)
        assert ours == pytest.approx(_llama_penalties(texts, breaker, history), rel=1e-5)
        seen += ours != dry_penalties(history, multiplier=1.0, base=1.5, allowed=1, breakers={})
    assert seen > 10, "the breaker made a difference"


def test_a_file_may_ban_tokens(tmp_path: Path, texts: TokenTexts) -> None:
    toy = attention_toy().having({"tokenizer.ggml.suppress_tokens": [5, BOS, 100_000]})
    with loaded(toy.write(tmp_path / "model.gguf")) as weights:
        assert TokenTexts(weights).suppressed == (5, BOS)
    assert texts.suppressed == ()


@pytest.mark.parametrize(
    ("text", "token"),
    [
        *(("7", 7), ("007", 7), ('"7"', ord("7")), ("a", ord("a")), ('"', ord('"')), ('"a"', ord("a"))),
        *(("<|im_end|>", TURN_END), ("\n", ord("\n")), ("٣", None), ('""', None), ("", None), ("qr", None)),
        ("999999", None),
    ],
)
def test_a_text_means_the_one_token_that_it_is(texts: TokenTexts, text: str, token: int | None) -> None:
    if token is not None:
        assert texts.token_of(text) == token
    else:
        with pytest.raises(UsageError) as caught:
            texts.token_of(text)
        assert len(caught.value.message.splitlines()) == 1
        assert caught.value.hint
        assert caught.value.exit_code == EXIT_USAGE


def test_a_text_of_several_tokens_is_taken_apart(texts: TokenTexts) -> None:
    with pytest.raises(UsageError) as caught:
        texts.token_of('"q\nr"')
    assert caught.value.message.endswith(f' is 3 tokens, not one: "q" ({ord("q")}), "\\n" (10), "r" ({ord("r")})')
    with pytest.raises(UsageError, match="and 4 more"):
        texts.token_of("q" * 12)


def test_an_id_beyond_the_vocabulary_is_refused_with_its_size(texts: TokenTexts) -> None:
    with pytest.raises(UsageError, match=f"there is no token {texts.size}: the vocabulary has {texts.size}"):
        texts.token_of(str(texts.size))


def test_a_text_means_the_token_in_the_middle_of_a_line(tmp_path: Path) -> None:
    with loaded(_sentencepiece(pieces=("▁", "▁h", "hi", "▁hi", "h", "i")).write(tmp_path / "model.gguf")) as weights:
        texts = TokenTexts(weights)
        assert texts.pieces[texts.token_of("hi")] == b"hi"
        assert texts.pieces[texts.token_of(" hi")] == b" hi"
        assert texts.pieces[texts.token_of("\n")] == b"\n"
