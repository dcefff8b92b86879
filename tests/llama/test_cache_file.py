"""Caches that outlive a run, and files that must not be taken for one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from specdec_cli.calibration import Measured
from specdec_cli.catalog import Pair
from specdec_cli.core.costs import Costs
from specdec_cli.errors import UsageError
from specdec_cli.files import replace_file
from specdec_cli.generation import Request
from specdec_cli.limits import DraftTokens
from specdec_cli.llama.cache_file import DIGEST, TITLE, Saved, identify, read_cache, write_cache
from specdec_cli.llama.context import Context
from specdec_cli.session import Session
from specdec_cli.settings import ModelSettings
from tests.engine import GREEDY, Notices, opened
from tests.toy_gguf import attention_toy
from tests.toy_kinds import KINDS, kind_toy

ME, OTHER = b"m" * 16, b"o" * 16
SAVED = Saved([1, 2, 3], b"state")
EXACT: dict[str, Any] = {"threads": 1, "cache_type_k": "f32", "cache_type_v": "f32", "flash_attn": "off"}
PROMPT = b"A prompt that takes its time to be read."


def _answer(
    pair: Pair, folder: Path, prompt: bytes = PROMPT, *, draft_tokens: DraftTokens = 4, **settings: Any
) -> tuple[str, list[int], list[str]]:
    """An answer that goes on from `folder`; its text, tokens that each model evaluated for it, and what is noticed."""
    heard = Notices()
    with Session(pair, ModelSettings(**{**EXACT, **settings}), heard.listener) as session:
        session.load_caches(folder)
        generation = session.generate(
            list(prompt), Request(chain=GREEDY, seed=1, draft_tokens=draft_tokens, max_tokens=20)
        )
        list(generation)
        session.save_caches(folder)
        evaluated = [context.evaluated for context in session._caches._contexts.values()]
    return generation.text, evaluated, heard.notices


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "of" / "target.cache"
    for saved in (Saved([], b""), SAVED, Saved([7] * 1000, b"x" * 100000)):
        write_cache(path, ME, saved)
        assert read_cache(path, ME) == saved
    assert [each.name for each in path.parent.iterdir()] == ["target.cache"]


def test_no_file_is_no_cache(tmp_path: Path) -> None:
    assert read_cache(tmp_path / "target.cache", ME) is None


def test_a_cache_of_another_model_is_refused(tmp_path: Path) -> None:
    write_cache(tmp_path / "target.cache", ME, SAVED)
    with pytest.raises(UsageError, match="of another model"):
        read_cache(tmp_path / "target.cache", OTHER)


def test_a_damaged_file_is_refused_whatever_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "target.cache"
    write_cache(path, ME, SAVED)
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(len(TITLE), len(whole))]
    damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(TITLE), len(whole))]
    for content in (*damaged, whole + b"more"):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=r"^cache .* is damaged$"):
            read_cache(path, ME)


@pytest.mark.parametrize("count", [4, 5, 1 << 31, (1 << 32) - 1])
def test_a_count_of_more_tokens_than_there_are_is_damage_whatever_the_digest_says(tmp_path: Path, count: int) -> None:
    path = tmp_path / "target.cache"
    body = TITLE + ME + struct.pack("<I3i", count, 1, 2, 3) + b"odd"
    path.write_bytes(body + blake2b(body, digest_size=DIGEST).digest())
    with pytest.raises(UsageError, match=r"^cache .* is damaged$"):
        read_cache(path, ME)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"specdec cache 2\n" + b"x" * 100])
def test_another_file_is_not_a_cache(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "target.cache"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is not a cache of specdec"):
        read_cache(path, ME)
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match="is not a file"):
        read_cache(path, ME)


def test_a_cache_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes, *, private: bool) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "target.cache"
    write_cache(path, ME, SAVED)
    monkeypatch.setattr("specdec_cli.llama.cache_file.replace_file", full)
    with pytest.raises(UsageError, match=r"^cannot write cache .*: No space left on device$"):
        write_cache(path, ME, Saved([9], b""))
    assert read_cache(path, ME) == SAVED


def test_models_are_told_apart_by_what_they_hold(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two", "longer", "copy")]
    big = bytes(range(256)) * 8000
    for path, content in zip(paths, (big, big[:-1] + b"x", big + b"x", big), strict=True):
        path.write_bytes(content)
    one, two, longer, copy = ([(path, 1.0)] for path in paths)
    told = [identify(files, ["f16"]) for files in (one, two, longer, one + two, [(paths[0], 0.5)])]
    told.append(identify(one, ["f32"]))
    assert len(set(told)) == len(told)
    assert identify(copy, ["f16"]) == told[0]


@pytest.mark.parametrize("kind", ["attention", *KINDS])
@pytest.mark.parametrize("length", [5, 40])
def test_a_restored_cache_goes_on_like_the_one_that_was_saved(tmp_path: Path, kind: str, length: int) -> None:
    toy = attention_toy(3.0) if kind == "attention" else kind_toy(kind, 3.0)
    path, text = toy.write(tmp_path / "model.gguf"), list(range(60))
    with opened(path, rows=4, snapshots=1) as context, opened(path, rows=6, snapshots=2, size=300) as other:
        context.extend(text[:30], rows=0)
        context.extend(text[30:40], rows=4)
        context.rewind(min(length, 38))
        saved = context.save()
        assert saved.tokens == text[: len(saved.tokens)]
        assert other.restore(saved) == bool(saved.tokens)
        held = other.length
        assert held == len(saved.tokens)
        context.extend(text[context.length : 50], rows=0)
        other.extend(text[held:50], rows=0)
        for each in (context, other):
            each.rewind(48)
        pairs = zip(context.extend(text[48:], rows=4), other.extend(text[48:], rows=4), strict=True)
        assert all(abs(ours - theirs).max() < 5e-4 for ours, theirs in pairs)


@pytest.mark.parametrize("saved", [Saved([1] * 600, b"x"), Saved([1, 2], b"not a state"), Saved([1], b"")])
def test_a_state_that_does_not_fit_leaves_an_empty_cache(attention_pair: Pair, saved: Saved) -> None:
    with opened(attention_pair.target) as context:
        assert not context.restore(saved)
        assert context.length == 0
        row = context.extend([1, 2], rows=1)[0].copy()
        context.rewind(0)
        assert (context.extend([1, 2], rows=1)[0] == row).all()


def test_a_later_run_reads_only_what_is_new(attention_pair: Pair, tmp_path: Path) -> None:
    text, evaluated, _ = _answer(attention_pair, tmp_path)
    longer = PROMPT + text.encode()[:5] + b" And more."
    again, less, heard = _answer(attention_pair, tmp_path, longer)
    assert heard == []
    assert all(count < before - len(PROMPT) + 20 for count, before in zip(less, evaluated, strict=True))
    assert again == _answer(attention_pair, tmp_path / "none", longer)[0]


def test_measuring_costs_takes_nothing_from_a_saved_cache(
    attention_pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(target: Context, drafts: Mapping[str, Context], token: int) -> Measured:
        for context in (target, *drafts.values()):
            context.rewind(0)
        return Measured(Costs((1.0, 1.0), {"model": (0.1,)}), is_steady=True)

    monkeypatch.setattr("specdec_cli.calibration.measure", measure)
    long = PROMPT * 8
    text, before, _ = _answer(attention_pair, tmp_path, long)
    again, evaluated, heard = _answer(attention_pair, tmp_path, long, draft_tokens="auto", recalibrate=True)
    assert (again, heard) == (text, [])
    assert min(before) > len(long) > 5 * max(evaluated)


def test_a_session_whose_model_file_was_removed_saves_and_measures_all_the_same(
    attention_pair: Pair, tmp_path: Path
) -> None:
    target = tmp_path / "target.gguf"
    target.write_bytes(attention_pair.target.read_bytes())
    with Session(Pair(target, "none"), ModelSettings(**EXACT), Notices().listener) as session:
        target.unlink()
        list(session.generate(list(PROMPT), Request(chain=GREEDY, seed=1, max_tokens=4)))
        session.save_caches(tmp_path)
    target.write_bytes(attention_pair.target.read_bytes())
    assert _answer(Pair(target, "none"), tmp_path)[1][0] < len(PROMPT)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "is damaged": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "is not a cache of specdec": lambda path: replace_file(path, b"something else"),
}


@pytest.mark.parametrize("reason", DAMAGES)
def test_a_damaged_cache_is_told_and_gone_on_without(attention_pair: Pair, tmp_path: Path, reason: str) -> None:
    expected = _answer(attention_pair, tmp_path)[0]
    DAMAGES[reason](tmp_path / "target.cache")
    text, _, heard = _answer(attention_pair, tmp_path)
    assert text == expected
    assert len(heard) == 1
    assert heard[0].endswith(f"{reason}: going on without it")


def test_a_cache_of_other_weights_is_told_and_gone_on_without(
    attention_pair: Pair, bad_draft_pair: Pair, tmp_path: Path
) -> None:
    _answer(attention_pair, tmp_path)
    text, _, heard = _answer(bad_draft_pair, tmp_path)
    assert text == _answer(attention_pair, tmp_path / "none")[0]
    assert len(heard) == 1
    assert "draft.cache is of another model" in heard[0]


@pytest.mark.parametrize(
    "settings", [{"cache_type_k": "f16"}, {"flash_attn": "on", "cache_type_v": "f16"}, {"ctx_size": 64}], ids=str
)
def test_other_settings_say_what_they_say_without_a_saved_cache(
    attention_pair: Pair, tmp_path: Path, settings: dict[str, Any]
) -> None:
    _answer(attention_pair, tmp_path, PROMPT + b"!" * 40)
    given, _, heard = _answer(attention_pair, tmp_path, **settings)
    assert [each.endswith(": going on without it") for each in heard] == [True, True]
    assert given == _answer(attention_pair, tmp_path / "none", **settings)[0]
