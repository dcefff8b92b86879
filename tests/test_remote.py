"""The same text, wherever the layers are: on this machine, on workers, or on both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.session import Session
from specdec_cli.settings import ModelPlacing, ModelSettings, Placing
from tests.engine import UNFILTERED, Notices, answer
from tests.worker_process import WorkerProcess

EXACT = ModelSettings(threads=1, cache_type_k="f32", cache_type_v="f32", flash_attn="off")
PROMPT = "The same text."
PLACES = ["one worker", "two workers", "worker and local", "the draft on a worker too"]


@pytest.fixture(scope="module")
def endpoints() -> Iterator[tuple[str, str]]:
    with WorkerProcess() as first, WorkerProcess() as second:
        yield first.endpoint, second.endpoint


def placed(where: str, endpoints: tuple[str, str]) -> ModelSettings:
    first = endpoints[0]
    placing = {
        "one worker": Placing((first,)),
        "two workers": Placing(endpoints),
        "worker and local": Placing((first,), ModelPlacing(device=("CPU", first), tensor_split=(1, 2))),
        "the draft on a worker too": Placing(endpoints, draft=ModelPlacing(device=(first,))),
    }
    return replace(EXACT, placing=placing[where])


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("draft_tokens", [0, 4])
def test_greedy_text_is_the_local_one_token_for_token(
    attention_pair: Pair, endpoints: tuple[str, str], where: str, draft_tokens: int
) -> None:
    local = answer(attention_pair, PROMPT, settings=EXACT, draft_tokens=0, max_tokens=60)
    settings = placed(where, endpoints)
    remote = answer(attention_pair, PROMPT, settings=settings, draft_tokens=draft_tokens, max_tokens=60)
    assert remote.generation.tokens == local.generation.tokens
    assert len(local.generation.tokens) == 60


@pytest.mark.parametrize("where", PLACES)
def test_sampled_text_is_the_local_one_too(attention_pair: Pair, endpoints: tuple[str, str], where: str) -> None:
    """In F32 rounding differs by 1e-5 at most, and this seed has no draw that near to an edge."""
    local = answer(attention_pair, PROMPT, settings=EXACT, chain=UNFILTERED, seed=5, max_tokens=60)
    settings = placed(where, endpoints)
    remote = answer(attention_pair, PROMPT, settings=settings, chain=UNFILTERED, seed=5, max_tokens=60)
    assert remote.generation.tokens == local.generation.tokens


def test_the_models_are_where_the_notice_says(attention_pair: Pair, endpoints: tuple[str, str]) -> None:
    memory = Notices()
    with Session(attention_pair, placed("two workers", endpoints), memory.listener) as session:
        assert session.target.backend == "RPC0+RPC1"
        assert session.draft is not None
        assert session.draft.backend == "CPU"
    first, second = endpoints
    assert memory.notices == [
        f"target 1 of 3 layers on RPC0 ({first}), 2 on RPC1 ({second}); draft on the CPU",
    ]


def test_devices_are_numbered_anew_in_each_session(attention_pair: Pair, endpoints: tuple[str, str]) -> None:
    for each in endpoints:
        settings = replace(EXACT, placing=Placing((each,)))
        with Session(Pair(attention_pair.target, "none"), settings, Notices().listener) as session:
            assert session.target.backend == "RPC0"
