from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.llama.library import llama
from specdec_cli.llama.tokenizer import Tokenizer
from tests.engine import loaded
from tests.toy_gguf import BOS, EOS, FIRST_EXTRA, TURN_END, attention_toy

LONG = b"-" * 96
EURO = "€".encode()
EXTRA = (LONG, "\N{SLIGHTLY SMILING FACE}".encode()[:2], b"\xff\xfe", EURO * 100)


@pytest.mark.parametrize("adds", [True, False, None])
@pytest.mark.parametrize("text", ["", "text", "<|bos|>", "<|bos|>text"])
def test_the_beginning_of_text_is_there_exactly_once_where_the_model_wants_it(
    tmp_path: Path, adds: bool | None, text: str
) -> None:
    path = attention_toy().having({"tokenizer.ggml.add_bos_token": adds}).write(tmp_path / "model.gguf")
    with loaded(path) as weights:
        tokens = Tokenizer(weights).encode(text)
    given = int(text.startswith("<|bos|>"))
    assert tokens.count(BOS) == max(given, adds or 0)
    assert tokens[tokens.count(BOS) :] == list(text.removeprefix("<|bos|>").encode())


def test_a_model_without_a_beginning_of_text_gets_none(attention_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama(), "llama_vocab_bos", lambda _: -1)
    monkeypatch.setattr(llama(), "llama_vocab_get_add_bos", lambda _: True)
    with loaded(attention_pair.target) as weights:
        tokenizer = Tokenizer(weights)
        assert not tokenizer.adds_bos
        assert tokenizer.encode("text") == list(b"text")
        assert tokenizer.special_text(tokenizer.bos) == ""


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = attention_toy(extra=EXTRA).write(tmp_path_factory.mktemp("tokenizer") / "model.gguf")
    with loaded(path) as weights:
        yield Tokenizer(weights)


@pytest.mark.parametrize("index", range(len(EXTRA)))
def test_a_token_of_any_length_and_any_bytes_is_printed_whole(tokenizer: Tokenizer, index: int) -> None:
    assert tokenizer.piece(FIRST_EXTRA + index) == EXTRA[index]


def test_every_byte_is_printed_as_itself(tokenizer: Tokenizer) -> None:
    assert [tokenizer.piece(byte) for byte in range(256)] == [bytes([byte]) for byte in range(256)]


def test_control_tokens_print_nothing_and_can_be_spelled_out(tokenizer: Tokenizer) -> None:
    assert [tokenizer.piece(token) for token in (BOS, EOS, TURN_END)] == [b"", b"", b""]
    assert tokenizer.special_text(TURN_END) == "<|im_end|>"


def test_control_tokens_in_a_text_are_recognised(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("a<|im_end|>b") == [97, TURN_END, 98]


def test_a_part_of_a_text_can_be_read_literally(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode_part("a<|im_end|>b", literally=True) == list(b"a<|im_end|>b")
    assert tokenizer.encode_part("a<|im_end|>b") == [97, TURN_END, 98]


def test_control_tokens_of_a_text_are_told_by_how_they_are_written(tokenizer: Tokenizer) -> None:
    assert tokenizer.control_texts("a<|im_end|>b<|bos|><|im_end|><|im_start|>") == {"<|im_end|>", "<|bos|>"}
    assert tokenizer.control_texts("plain") == set()


@pytest.mark.parametrize(
    "text", ["plain", "  blanks \t\r\n\n", "mañana 日本語 🙂‍↔️", "\0", "[/INST] :smile: [bold]", "x" * 5000]
)
def test_what_is_read_is_what_is_printed(tokenizer: Tokenizer, text: str) -> None:
    assert b"".join(tokenizer.piece(token) for token in tokenizer.encode(text)) == text.encode()


def test_half_a_surrogate_pair_is_no_reason_to_fail(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("a\ud800b") == list(b"a?b")


def test_every_end_of_generation_that_the_vocabulary_marks_is_an_end(tmp_path: Path) -> None:
    toy = attention_toy(extra=(b"plain", b"<|eot_id|>")).having({"tokenizer.ggml.eot_token_id": FIRST_EXTRA})
    with loaded(toy.write(tmp_path / "model.gguf")) as weights:
        tokenizer = Tokenizer(weights)
        ends = [token for token in range(len(toy.tokens)) if tokenizer.is_end(token)]
        assert tokenizer.eos == EOS
    assert ends == [EOS, TURN_END, FIRST_EXTRA, FIRST_EXTRA + 1]
