from __future__ import annotations

from collections.abc import Iterable

import pytest

from specdec_cli.core.text import Segment, TextStream


def shown(pieces: Iterable[bytes], *stops: str) -> list[str]:
    """The text that appears after each piece, then what the end releases, as one string each."""
    stream: TextStream[int] = TextStream(stops)
    steps = []
    for index, piece in enumerate(pieces):
        steps.append("".join(segment.text for segment in stream.feed(piece, index)))
        if stream.stopped:
            break
    return [*steps, "".join(segment.text for segment in stream.finish(-1))]


def split(text: str) -> list[bytes]:
    return [bytes([byte]) for byte in text.encode()]


def test_text_appears_token_by_token() -> None:
    assert shown([b"Hello", b",", b" world"]) == ["Hello", ",", " world", ""]


@pytest.mark.parametrize("text", ["€", "a€b", "日本語", "👩‍🚀!", "é"])
def test_characters_that_arrive_byte_by_byte_appear_whole_and_in_order(text: str) -> None:
    steps = shown(split(text))
    assert "".join(steps) == text
    assert all("�" not in step for step in steps)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([b"\xff"], "�"),
        ([b"a", b"\xff", b"b"], "a�b"),
        ([b"\xe2\x82"], "�"),
        ([b"\xe2", b"\x82"], "�"),
        ([b"\xf0\x9f\x91"], "�"),
        ([b"\xe2\x82", b"A"], "�A"),
        ([b"ok\xe2"], "ok�"),
        ([b"\xe2\x82", b"\xe2\x82\xac"], "�€"),
    ],
)
def test_bytes_that_are_no_character_become_one_replacement(pieces: list[bytes], text: str) -> None:
    assert "".join(shown(pieces)) == text


def test_a_cut_character_appears_only_at_the_end() -> None:
    assert shown([b"a\xe2", b"\x82"]) == ["a", "", "�"]


def test_text_ends_just_before_a_stop_string_over_tokens() -> None:
    assert shown([b"8", b" 9", b" 1", b"0"], " 9 1") == ["8", "", "", ""]


def test_a_beginning_that_does_not_complete_is_released() -> None:
    assert shown([b"8", b" 9", b" 2", b" 9"], " 9 1") == ["8", "", " 9 2", "", " 9"]


def test_a_held_beginning_gives_way_to_a_later_one() -> None:
    assert shown([b"aa", b"a", b"ab", b"x"], "aab") == ["", "a", "a", ""]


def test_the_first_of_several_stop_strings_ends_the_text() -> None:
    assert shown([b"one two three"], "three", "two") == ["one ", ""]
    assert shown([b"o", b"n", b"e"], "xyz", "ne") == ["o", "", "", ""]


def test_a_stop_string_inside_one_token_cuts_it() -> None:
    assert shown([b"before###after"], "###") == ["before", ""]


def test_a_stop_string_whose_character_arrives_in_two_tokens_is_found() -> None:
    assert shown([b"caf", b"\xc3", b"\xa9", b"!"], "é") == ["caf", "", "", ""]


def test_a_cut_character_may_complete_a_stop_string_without_leaking_it() -> None:
    assert shown([b"ab", b"\xff"[:0], b"\xe2"], "b�") == ["a", "", "", ""]


def test_a_stop_string_that_the_end_leaves_incomplete_is_text() -> None:
    assert shown([b"a", b"#", b"#"], "###") == ["a", "", "", "##"]


def test_every_segment_carries_the_mark_of_the_token_that_completed_it() -> None:
    stream: TextStream[str] = TextStream(["###"])
    assert stream.feed(b"a#", "first") == [Segment("a", "first")]
    assert stream.feed(b"\xe2\x82", "second") == []
    assert stream.feed(b"\xac", "third") == [Segment("#", "first"), Segment("€", "third")]
    assert stream.feed(b"x\xe2", "fourth") == [Segment("x", "fourth")]
    assert stream.finish("end") == [Segment("�", "end")]


def test_nothing_comes_after_a_stop() -> None:
    stream: TextStream[int] = TextStream(["."])
    stream.feed(b"a.b\xe2", 0)
    assert stream.stopped
    assert stream.finish(1) == []


def test_any_cutting_into_tokens_gives_the_same_text() -> None:
    text = "naïve ##x### rest"
    data = text.encode()
    for size in range(1, len(data) + 1):
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        assert "".join(shown(pieces, "###")) == "naïve ##x"
        assert "".join(shown(pieces, "never")) == text
