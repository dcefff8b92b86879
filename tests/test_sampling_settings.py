"""Who decides about the sampling chain: the user, else the model file, else llama.cpp."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.errors import UsageError
from specdec_cli.llama.token_texts import TokenTexts
from specdec_cli.sampling_settings import read_brought, to_chain, to_settings
from tests.engine import loaded
from tests.toy_gguf import BOS, FIRST_EXTRA, attention_toy

TOY = attention_toy(extra=[b"\n:"])
LINE_COLON = FIRST_EXTRA


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenTexts]:
    with loaded(TOY.write(tmp_path_factory.mktemp("settings") / "model.gguf")) as weights:
        yield TokenTexts(weights)


def chain_of(texts: TokenTexts, brought: dict[str, Any] | None = None, **given: Any) -> SamplingChain:
    return to_chain(given, brought or {}, texts, context=2048)


def brought_by(folder: Path, **values: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a file that recommends `values` brings."""
    toy = TOY.having({f"general.sampling.{key}": value for key, value in values.items()})
    return read_brought(toy.write(folder / "model.gguf"), "target")


def test_nobody_says_anything_and_llama_cpp_decides(texts: TokenTexts) -> None:
    assert chain_of(texts) == SamplingChain()


def test_the_user_is_heard_before_the_file_and_the_file_before_llama_cpp(texts: TokenTexts) -> None:
    chain = chain_of(texts, {"temperature": 0.6, "top_k": 20, "samplers": ("top_k",)}, temperature=0.0, min_p=0.1)
    assert chain == SamplingChain(temperature=0, top_k=20, min_p=0.1, samplers=("top_k",))
    samplers = ("temperature", "top_k")
    assert chain_of(texts, {"samplers": ("top_k",)}, samplers=samplers).samplers == samplers


def test_what_a_file_brings_is_taken_as_it_is_written(tmp_path: Path, texts: TokenTexts) -> None:
    brought, ignored = brought_by(
        tmp_path, temp=0.6, top_k=20, top_p=0.95, penalty_repeat=1.05, penalty_last_n=256, sequence="top-k;temp,min_p"
    )
    assert ignored == ()
    assert chain_of(texts, brought) == SamplingChain(
        0.6, 20, 0.95, repeat_penalty=1.05, repeat_last_n=256, samplers=("top_k", "temperature", "min_p")
    )


@pytest.mark.parametrize(
    ("sequence", "samplers", "reason"),
    [
        ("top_k;magic;temperature", ("top_k", "temperature"), 'no sampler is named "magic"'),
        ("top_k;temp;top-k", ("top_k", "temperature"), "the sampler top_k is named twice"),
        ("edskypmxt", None, 'no sampler is named "edskypmxt"'),
    ],
)
def test_what_an_order_names_that_is_no_sampler_is_told_and_left_out(
    tmp_path: Path, sequence: str, samplers: tuple[str, ...] | None, reason: str
) -> None:
    brought, ignored = brought_by(tmp_path, sequence=sequence, top_k=20)
    assert brought == {"top_k": 20} | ({} if samplers is None else {"samplers": samplers})
    assert ignored == (f"the target's order of samplers holds one that is ignored: {reason}",)


def test_all_that_is_ignored_is_told_each_for_itself(tmp_path: Path) -> None:
    brought, ignored = brought_by(tmp_path, mirostat=2, temp=-1.0, sequence="magic", min_p=0.5)
    assert brought == {"min_p": 0.5}
    assert len(ignored) == 3
    assert any("mirostat 2 is ignored" in each for each in ignored)
    assert any("temp -1.0 is ignored" in each for each in ignored)


@pytest.mark.parametrize("name", ["repeat_last_n", "dry_penalty_last_n"])
@pytest.mark.parametrize("is_given", [True, False])
def test_minus_1_looks_back_on_all_of_the_context(texts: TokenTexts, name: str, is_given: bool) -> None:
    options: dict[str, Any] = {name: -1, "repeat_penalty": 1.1, "dry_multiplier": 1.0}
    chain = chain_of(texts, **options) if is_given else chain_of(texts, options)
    assert getattr(chain, name) == chain.window == 2048


def test_a_bias_names_its_token_by_text_or_by_id(texts: TokenTexts) -> None:
    bias = (("65", -math.inf), ('"6"', 2.0), ("a", 0.5), ("<|bos|>", -1.0))
    assert chain_of(texts, logit_bias=bias).logit_bias == (
        (65, -math.inf),
        (ord("6"), 2.0),
        (ord("a"), 0.5),
        (BOS, -1.0),
    )


@pytest.mark.parametrize(
    ("token", "message"),
    [("hello", '"hello" is 5 tokens, not one'), ("4711", "there is no token 4711: the vocabulary has 260")],
)
def test_a_bias_for_what_is_not_one_token_is_refused(texts: TokenTexts, token: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        chain_of(texts, logit_bias=((token, 1.0),))


def test_a_value_out_of_its_range_is_refused_whoever_says_it(texts: TokenTexts) -> None:
    for given, brought in (({"top_p": 2.0}, {}), ({}, {"top_p": 2.0})):
        with pytest.raises(UsageError, match=r"--top-p 2 is not in 0\.\.1"):
            to_chain(given, brought, texts, context=100)


def test_tokens_that_the_file_suppresses_are_banned_whatever_the_user_adds(tmp_path: Path) -> None:
    path = TOY.having({"tokenizer.ggml.suppress_tokens": [65, BOS]}).write(tmp_path / "model.gguf")
    with loaded(path) as weights:
        chain = chain_of(TokenTexts(weights), logit_bias=(("A", 5.0), ("B", 1.0)))
    assert chain.logit_bias == ((65, 5.0), (66, 1.0), (65, -math.inf), (BOS, -math.inf))
    assert to_settings(chain)["logit_bias"] == {"65": None, "66": 1.0, str(BOS): None}


def test_breakers_are_llama_cpps_unless_the_user_gives_some(texts: TokenTexts) -> None:
    by_itself = chain_of(texts, dry_multiplier=1.0).dry_breakers
    assert set(by_itself) == {*b'\n:"*', LINE_COLON}
    assert set(chain_of(texts, dry_multiplier=1.0, dry_sequence_breaker=["Q", "YZ"]).dry_breakers) == {*b"QY"}


@pytest.mark.parametrize("breakers", [["none"], [], ["none", "Q"]])
def test_none_is_no_breaker(texts: TokenTexts, breakers: list[str]) -> None:
    found = chain_of(texts, dry_multiplier=1.0, dry_sequence_breaker=breakers).dry_breakers
    assert set(found) == {ord("Q")} & {ord(text) for text in breakers if text != "none"}


def test_breakers_of_a_sampler_that_is_off_are_not_looked_up(texts: TokenTexts) -> None:
    assert chain_of(texts, dry_sequence_breaker=["Q"]).dry_breakers == {}


def test_the_settings_say_all_options_as_they_are_given(texts: TokenTexts) -> None:
    chain = chain_of(texts, {"top_k": 7}, temperature=0.5, logit_bias=(("A", -2.0),), dry_multiplier=1.0)
    settings = to_settings(chain)
    assert settings.items() >= {"top_k": 7, "temperature": 0.5, "logit_bias": {"65": -2.0}}.items()
    assert settings.items() >= {"dry_multiplier": 1.0, "samplers": chain.samplers, "xtc_threshold": 0.1}.items()
    assert not [name for name in settings if name.startswith("_")]


def test_a_bias_that_adds_up_is_shown_as_its_sum(texts: TokenTexts) -> None:
    chain = chain_of(texts, logit_bias=(("A", 1.0), ("65", 2.5), ("B", -1.0)))
    assert to_settings(chain)["logit_bias"] == {"65": 3.5, "66": -1.0}
