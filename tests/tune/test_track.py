from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from specdec_cli.bench.prompts import built_in
from specdec_cli.catalog import Pair
from specdec_cli.errors import ModelError
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from specdec_cli.tune.setting import Setting
from specdec_cli.tune.track import TOKENS, Track, main_source
from tests.engine import Notices


@pytest.fixture
def session(attention_pair: Pair) -> Iterator[Session]:
    with Session(attention_pair, ModelSettings(threads=1), Notices().listener) as session:
        yield session


@pytest.fixture
def track(session: Session) -> Track:
    return Track(session, built_in())


def start(session: Session) -> Setting:
    return Setting(session.pair.drafters, 1, 1, draft_tokens=3)


def test_a_run_drafts_as_its_setting_says_and_is_counted_by_who_drafted(session: Session, track: Track) -> None:
    setting = start(session)
    for cell in range(track.prompts):
        assert track.speed(setting, cell)
        assert track.speed(replace(setting, chain=("lookup",)), cell)
        assert track.speed(setting.plain, cell)
    counters = track.counters(setting.chain)
    assert counters.tokens == TOKENS * track.prompts
    assert counters.by_source.keys() == {"model"}
    assert main_source(counters, setting) == "model"
    assert "model" not in track.counters(("lookup",)).by_source


def test_the_same_cell_says_the_same_for_every_setting_that_promises_it(session: Session, track: Track) -> None:
    said = []
    for setting in (start(session), start(session).plain, replace(start(session), chain=("lookup",))):
        track.speed(replace(setting, rule="coupled"), 1)
        assert session._answer is not None
        said.append(session._answer.tokens)
    assert said[0] == said[1] == said[2]


def test_threads_change_without_loading_anything_anew(session: Session, track: Track) -> None:
    target, setting = session.target, start(session)
    track.speed(setting, 0)
    track.speed(replace(setting, threads=2, draft_threads=1, batch_size=64), 0)
    assert (session.settings.threads, session.settings.draft_threads, session.settings.batch_size) == (2, 1, 64)
    assert session.target is target


def test_reading_a_prompt_is_timed_for_a_prompt_that_no_cache_holds(session: Session, track: Track) -> None:
    setting = start(session)
    assert track.prompt_speed(setting, 0)
    assert track.prompt_speed(setting, 1)
    assert session._answer is not None
    assert session._answer.prompt_tokens == 256


def test_half_of_the_prompts_are_sampled(track: Track) -> None:
    assert (track.prompts, track.sampled) == (4, (1, 3))


def test_a_model_without_a_template_is_asked_in_plain_text(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> list[int]:
        raise ModelError("no template")

    with Session(attention_pair, ModelSettings(threads=1), Notices().listener) as session:
        monkeypatch.setattr(session, "prompt_from_messages", refuse)
        assert Track(session, built_in()).speed(start(session), 0)


def test_costs_are_those_of_a_setting_whichever_ran_last(session: Session, track: Track) -> None:
    setting = replace(start(session), draft_tokens="auto")
    track.speed(setting, 0)
    known = session.costs
    assert known is not None
    track.speed(replace(setting, threads=2, draft_tokens=3), 0)
    track.prompt_speed(replace(setting, batch_size=64), 0)
    assert track.costs(setting) is known


def test_a_small_context_shortens_the_prompt_that_is_timed(attention_pair: Pair) -> None:
    with Session(attention_pair, ModelSettings(threads=1, ctx_size=200), Notices().listener) as session:
        track = Track(session, [replace(each, prompt="short") for each in built_in()])
        assert track.prompt_speed(start(session), 0)
        assert session._answer is not None
        assert session._answer.prompt_tokens == 199
