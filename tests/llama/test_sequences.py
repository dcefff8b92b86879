"""Many texts in one context: each goes on as it would alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from specdec_cli.errors import ModelError
from specdec_cli.limits import MOST_SEQUENCES
from specdec_cli.llama.context_options import ContextOptions
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.sequences import Rows, Sequences
from tests.engine import loaded, opened
from tests.toy_gguf import attention_toy

EXACT = ContextOptions(
    size=64, batch=16, rows=4, threads=1, flash_attention="off", cache_type_k="f32", cache_type_v="f32"
)
NEAR = 1e-4
"""F32 sums in another order."""
Alone = Callable[[bytes], Rows]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return attention_toy(3.0).write(tmp_path_factory.mktemp("toys") / "toy.gguf")


@pytest.fixture
def texts(toy: Path) -> Iterator[Sequences]:
    with loaded(toy) as weights, Sequences(weights, Interrupt(), 4, EXACT) as sequences:
        yield sequences


@pytest.fixture(scope="module")
def alone(toy: Path) -> Iterator[Alone]:
    """The logits after a text that has a context for itself."""
    with opened(toy) as context:

        def row(text: bytes) -> Rows:
            context.rewind(0)
            return context.extend(list(text), rows=1)[0].copy()

        yield row


def test_each_text_goes_on_as_it_would_alone(texts: Sequences, alone: Alone) -> None:
    said = [b"one", b"another text", b"3", b"and the fourth"]
    for index, text in enumerate(said):
        np.testing.assert_allclose(texts.begin(index, list(text)), alone(text), atol=NEAR)
    for token in b"xyz":
        said = [text + bytes([token + index]) for index, text in enumerate(said)]
        rows = texts.advance(range(4), [text[-1] for text in said])
        for row, text in zip(rows, said, strict=True):
            np.testing.assert_allclose(row, alone(text), atol=NEAR)


def test_a_place_whose_text_ended_is_used_again_while_others_go_on(texts: Sequences, alone: Alone) -> None:
    for index in range(3):
        texts.begin(index, list(b"some text"))
    np.testing.assert_allclose(texts.begin(1, list(b"new")), alone(b"new"), atol=NEAR)
    rows = texts.advance([0, 1], list(b"ab"))
    np.testing.assert_allclose(rows[0], alone(b"some texta"), atol=NEAR)
    np.testing.assert_allclose(rows[1], alone(b"newb"), atol=NEAR)
    np.testing.assert_allclose(texts.advance([2], list(b"c"))[0], alone(b"some textc"), atol=NEAR)


def test_a_text_longer_than_a_batch_is_read_in_parts(texts: Sequences, alone: Alone) -> None:
    text = b"a text that is longer than sixteen tokens"
    np.testing.assert_allclose(texts.begin(2, list(text)), alone(text), atol=NEAR)


def test_more_texts_than_llama_cpp_allows_are_refused(toy: Path) -> None:
    with loaded(toy) as weights, pytest.raises(ModelError, match="no context for 257 texts of 64 tokens each"):
        Sequences(weights, Interrupt(), MOST_SEQUENCES + 1, EXACT)


def test_ctrl_c_ends_it_between_two_passes(toy: Path) -> None:
    interrupt = Interrupt()
    with loaded(toy) as weights, Sequences(weights, interrupt, 2, EXACT) as texts:
        texts.begin(0, list(b"text"))
        interrupt.flag[0] = b"\x01"
        with pytest.raises(KeyboardInterrupt):
            texts.advance([0], [1])


def test_a_text_that_is_full_is_one_line(toy: Path) -> None:
    with (
        loaded(toy) as weights,
        Sequences(weights, Interrupt(), 2, EXACT) as texts,
        pytest.raises(ModelError, match=r"target .*toy\.gguf failed while evaluating"),
    ):
        texts.begin(0, list(range(256)) * 3)
