"""Lines of a pipe, by the rule that prompts have."""

from __future__ import annotations

import io

import pytest

from specdec_cli.chat.reading import PipeReader, SilentKeys, is_by_hand
from specdec_cli.terminal import Terminal


def piped(data: bytes) -> Terminal:
    return Terminal(io.BytesIO(data), io.BytesIO(), io.StringIO(), {})


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\nb", ["a", "b"]),
        (b"a\r\n\r\n b \n", ["a", "", " b "]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"caf\xe9\n", ["caf\ufffd"]),
    ],
)
def test_a_line_is_what_stands_between_two_ends(data: bytes, lines: list[str]) -> None:
    reader = PipeReader(piped(data))
    assert [reader.read("a draft") for _ in lines] == lines
    with pytest.raises(EOFError):
        reader.read()


def test_a_pipe_is_nobody_and_its_keys_are_left_alone() -> None:
    terminal = piped(b"x")
    assert not is_by_hand(terminal)
    with SilentKeys(terminal) as keys, keys.lifted():
        assert terminal.stdin.read() == b"x"
