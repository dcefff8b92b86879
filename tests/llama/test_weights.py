from __future__ import annotations

from pathlib import Path

import pytest

from specdec_cli.catalog import Pair
from specdec_cli.errors import ModelError
from specdec_cli.llama.devices import usable_cpus
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.library import llama
from specdec_cli.llama.placement import Placement
from specdec_cli.llama.weights import load_weights
from tests.engine import loaded
from tests.toy_gguf import attention_toy


def test_loading_reports_its_progress_up_to_the_end(attention_pair: Pair) -> None:
    shares: list[float] = []
    load_weights(
        attention_pair.target, "target", placement=Placement(), interrupt=Interrupt(), on_progress=shares.append
    ).close()
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_ctrl_c_while_loading_ends_it(attention_pair: Pair) -> None:
    interrupt = Interrupt()

    def press(share: float) -> None:
        interrupt.flag[0] = b"\x01"

    with pytest.raises(KeyboardInterrupt):
        load_weights(attention_pair.target, "target", placement=Placement(), interrupt=interrupt, on_progress=press)


def test_weights_know_what_they_are(attention_pair: Pair) -> None:
    with loaded(attention_pair.target) as weights:
        assert weights.vocabulary_size == 259
        assert weights.trained_context == 2048
        assert weights.description.startswith("llama")
        assert weights.bytes == sum(tensor.nbytes for tensor in attention_toy().tensors.values())
        assert weights.can_roll_back
        assert weights.backend == "CPU"


@pytest.mark.parametrize(
    ("question", "answer", "kind"),
    [
        ("llama_model_has_decoder", False, "an encoder"),
        ("llama_model_has_encoder", True, "an encoder-decoder"),
        ("llama_model_is_diffusion", True, "a diffusion model"),
        ("llama_vocab_n_tokens", 0, "without a vocabulary"),
    ],
)
def test_what_cannot_continue_a_text_is_refused_and_freed(
    attention_pair: Pair, monkeypatch: pytest.MonkeyPatch, question: str, answer: object, kind: str
) -> None:
    freed: list[object] = []
    free = llama().llama_model_free
    monkeypatch.setattr(llama(), question, lambda _: answer)

    def record(model: object) -> None:
        freed.append(model)
        free(model)

    monkeypatch.setattr(llama(), "llama_model_free", record)
    with pytest.raises(ModelError, match=rf"^target .* is {kind}: it cannot continue a text"):
        load_weights(attention_pair.target, "target", placement=Placement(), interrupt=Interrupt(), on_progress=print)
    assert len(freed) == 1


def test_closing_twice_frees_once(attention_pair: Pair) -> None:
    with loaded(attention_pair.target) as weights:
        weights.close()
        assert weights.model is None


def test_threads_are_the_cpus_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 5, 7}, raising=False)
    assert usable_cpus() == 3
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert usable_cpus() == 1


def test_a_path_with_any_characters_loads(tmp_path: Path, attention_pair: Pair) -> None:
    path = tmp_path / "mødel [bold] 模型 €.gguf"
    path.write_bytes(attention_pair.target.read_bytes())
    with loaded(path) as weights:
        assert weights.vocabulary_size == 259
