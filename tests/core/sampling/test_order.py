from __future__ import annotations

import pytest

from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.sampling.order import DEFAULT_ORDER, to_samplers
from specdec_cli.core.sampling.samplers import SAMPLERS
from specdec_cli.errors import UsageError


def test_every_name_has_its_sampler() -> None:
    assert tuple(SAMPLERS) == DEFAULT_ORDER


@pytest.mark.parametrize(
    ("text", "samplers"),
    [
        (";".join(DEFAULT_ORDER), DEFAULT_ORDER),
        ("top_k;temperature", ("top_k", "temperature")),
        ("temperature, top_k", ("temperature", "top_k")),
        ("Top-K;MIN-P", ("top_k", "min_p")),
        ("topk,minp,topnsigma,typp", ("top_k", "min_p", "top_n_sigma", "typ_p")),
        ("nucleus;typ;temp", ("top_p", "typ_p", "temperature")),
        ("", ()),
        (" ", ()),
    ],
)
def test_samplers_are_read_as_people_write_them(text: str, samplers: tuple[str, ...]) -> None:
    assert to_samplers(text) == samplers


@pytest.mark.parametrize("text", ["top_q", "top k", "top_k;;min_p", "mirostat", "top_k;"])
def test_an_unknown_name_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        to_samplers(text)
    assert all(name in caught.value.hint for name in DEFAULT_ORDER)


@pytest.mark.parametrize("text", ["top_k;min_p;top_k", "nucleus,top-p", "temp;temperature"])
def test_a_name_that_comes_twice_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="twice"):
        to_samplers(text)


@pytest.mark.parametrize("samplers", [("top_k", "top_k"), ("topk",)])
def test_a_chain_takes_known_names_once(samplers: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        SamplingChain(samplers=samplers)
