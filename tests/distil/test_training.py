"""A draft from its first step to its GGUF file: it learns, goes on where it was, and says in llama.cpp the same."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from specdec_cli.cli import run
from specdec_cli.distil.answers import Answer, AnswerFile
from specdec_cli.llama.gguf import read_vocabulary
from specdec_cli.llama.interrupt import Interrupt
from tests.commands.test_generate import Outcome
from tests.engine import opened
from tests.toy_gguf import attention_toy

if not os.environ.get("SPECDEC_REQUIRE_TORCH"):
    pytest.importorskip("torch", reason="no PyTorch: install specdec-cli[distil]")

import torch

from specdec_cli.distil import teaching
from specdec_cli.distil.checkpoint import read_checkpoint
from specdec_cli.distil.losses import PART, Disagreement
from specdec_cli.distil.network import Network
from specdec_cli.distil.training import Schedule

WORDS = b"the cat sat on the mat and the dog sat on the log; "
ANSWERS = 60
KEPT = 2
"""Answers that are kept out: numbers 0 and 50."""
BATCHES = (ANSWERS - KEPT) * 150 // (2 * 128)
Distil = Callable[..., Outcome]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return attention_toy(3.0).write(tmp_path_factory.mktemp("toys") / "target.gguf")


def said(number: int) -> Answer:
    """An answer that turns WORDS from some place on, of which the target was nearly certain."""
    turned = np.frombuffer((WORDS * 4)[number % 40 :][:150], np.uint8).astype(np.int32)
    likely = np.stack([turned[10:], (turned[10:] + 1) % 256], axis=1)
    return Answer(number, 10, turned, likely, np.log(np.tile([0.96, 0.04], (140, 1))).astype(np.float16))


@pytest.fixture
def answers(target: Path, tmp_path: Path) -> Path:
    file = AnswerFile(tmp_path / "some.answers", read_vocabulary(target, "target").fingerprint)
    file.resume("words")
    for number in range(ANSWERS):
        file.add(said(number))
    return file.path


@pytest.fixture
def distil(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: Path
) -> Distil:
    """Run `specdec distil` on the toy target in a folder of its own."""

    def start(command: str, *arguments: object) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = run(["distil", command, "-m", str(target), *map(str, arguments)])
        out, err = capsysbinary.readouterr()
        return Outcome(code, out.decode(), err.decode())

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(teaching, "Schedule", partial(Schedule, window=128))
    torch.set_num_threads(1)
    return start


def trained(distil: Distil, answers: Path, *more: object, epochs: int = 3) -> Outcome:
    return distil("train", answers, "-o", "t.training", "--width", 64, "--layers", 1, "--epochs", epochs, *more)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_loss_and_its_gradients_are_those_of_the_plain_formula(share: float) -> None:
    generator = torch.Generator().manual_seed(0)
    states, head = ((torch.randn(size, 16, generator=generator) / 2).bfloat16().float() for size in (PART + 9, 40))
    likely = torch.stack([torch.randperm(40, generator=generator)[:3] for _ in states])
    chances = torch.rand(len(states), 3, generator=generator)
    chances /= chances.sum(dim=1, keepdim=True)
    chances[5] = 0
    bias = torch.randn(40, generator=generator)

    def plain(h: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
        logs = (h @ e.T + bias).log_softmax(dim=1).gather(1, likely)
        entropy = -(chances * logs).sum()
        alpha = torch.minimum(chances, logs.exp()).sum(dim=1).clamp_min(1e-3)
        return ((1 - share) * entropy - share * alpha.log().sum()) / len(h)

    results = []
    for loss_of in (plain, lambda h, e: Disagreement.apply(h, e, bias, likely, chances, share)):
        h, e = states.clone().requires_grad_(), head.clone().requires_grad_()
        loss_of(h, e).backward()
        results.append((h.grad, e.grad))
    for expected, found in zip(*results, strict=True):
        assert (expected - found).norm() < 0.01 * expected.norm(), "up to the rounding of bfloat16"


def test_a_draft_learns_what_its_target_says(distil: Distil, answers: Path) -> None:
    outcome = trained(distil, answers, epochs=8)
    assert outcome.code == 0
    assert outcome.err.count("note: epoch ") == 8
    assert read_checkpoint(Path("t.training")).alpha > 0.5


@pytest.mark.parametrize("moment", [3, BATCHES + 2, BATCHES + KEPT + 5], ids=["batch", "agreement", "second epoch"])
def test_a_training_that_was_broken_off_goes_on_as_if_it_had_not_been(
    distil: Distil, answers: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    trained(distil, answers)
    whole = read_checkpoint(Path("t.training"))
    Path("t.training").unlink()
    checks = 0
    check = Interrupt.check

    def pressed(self: Interrupt) -> None:
        nonlocal checks
        checks += 1
        if checks == moment:
            raise KeyboardInterrupt
        check(self)

    with monkeypatch.context() as patch:
        patch.setattr(Interrupt, "check", pressed)
        outcome = trained(distil, answers)
    assert outcome.code == 130
    assert "the same command goes on from there" in outcome.err
    half = read_checkpoint(Path("t.training"))
    assert half.epoch < whole.epoch
    assert trained(distil, answers).code == 0
    again = read_checkpoint(Path("t.training"))
    assert again.alpha == whole.alpha
    assert all(torch.equal(again.network[name], weight) for name, weight in whole.network.items())


def export(distil: Distil, *more: object) -> Path:
    assert distil("export", "t.training", "-o", "draft.gguf", *more).code == 0
    return Path("draft.gguf")


def logits_in_torch(text: Sequence[int]) -> npt.NDArray[np.float32]:
    """What the best network of the training says after each token, of all ids."""
    found = read_checkpoint(Path("t.training"))
    network = Network(found.shape, found.vocabulary.rows)
    network.load_state_dict(found.best)
    network.eval()
    with torch.no_grad():
        states = network(torch.from_numpy(found.vocabulary.compact(np.array(text)))[None])[0]
        compact: npt.NDArray[np.float32] = (states @ network.token_embd.weight.T).numpy()
    return compact[:, found.vocabulary.compact(np.arange(found.vocabulary.size))]


def test_llama_cpp_says_what_pytorch_was_taught(distil: Distil, answers: Path) -> None:
    trained(distil, answers, "--layers", 2)
    text = [*WORDS[:30], 7, *WORDS[30:40]]
    draft = export(distil, "--type", "f32", "--embedding-type", "f32")
    with opened(draft, rows=len(text)) as context:
        rows = np.stack(context.extend(text, rows=len(text)))
    np.testing.assert_allclose(rows, logits_in_torch(text), atol=2e-3)


def test_tokens_that_were_never_seen_are_kept_out(distil: Distil, answers: Path) -> None:
    trained(distil, answers, epochs=8)
    seen = {*WORDS, *[(each + 1) % 256 for each in WORDS]}
    rows = logits_in_torch(list(WORDS))
    chances = np.exp(rows - rows.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    unseen = [each for each in range(rows.shape[1]) if each not in seen]
    assert chances[:, unseen].sum(axis=1).mean() < 0.05


def test_a_quantised_draft_has_the_vocabulary_of_its_target_and_is_near_the_exact_one(
    distil: Distil, answers: Path, target: Path
) -> None:
    trained(distil, answers)
    draft = export(distil, "--type", "q8_0", "--embedding-type", "q8_0", "--license", "apache-2.0")
    ours, theirs = read_vocabulary(draft, "draft"), read_vocabulary(target, "target")
    assert ours.fingerprint == theirs.fingerprint
    with opened(draft, rows=20) as context:
        rows = np.stack(context.extend(list(WORDS[:20]), rows=20))
    exact = logits_in_torch(list(WORDS[:20]))
    assert np.abs(rows - exact).mean() < 0.05 * exact.std()


def test_too_few_answers_are_one_line(distil: Distil, target: Path) -> None:
    file = AnswerFile(Path("few.answers"), read_vocabulary(target, "target").fingerprint)
    file.resume("words")
    file.add(said(0))
    outcome = trained(distil, file.path)
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, "error: there are too few answers to learn from")
    file.path.write_bytes(file.path.read_bytes().splitlines(keepends=True)[0])
    assert trained(distil, file.path).err.startswith("error: there are too few answers to learn from")


def test_a_training_of_another_shape_is_not_written_over(distil: Distil, answers: Path) -> None:
    trained(distil, answers)
    before = Path("t.training").read_bytes()
    outcome = trained(distil, answers, "--layers", 2)
    assert outcome.code == 2
    assert outcome.err.startswith("error: training t.training has another shape or schedule\n")
    assert Path("t.training").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"some text", b"PK\x03\x04 half a zip"])
def test_a_file_that_is_no_training_is_refused(distil: Distil, answers: Path, content: bytes) -> None:
    Path("t.training").write_bytes(content)
    assert trained(distil, answers).err.startswith("error: t.training is no training of specdec distil")
    outcome = distil("export", "t.training", "-o", "draft.gguf")
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        2,
        "error: t.training is no training of specdec distil, or is damaged",
    )
    assert not Path("draft.gguf").exists()


def test_a_draft_wider_than_its_target_is_refused(distil: Distil, answers: Path, target: Path) -> None:
    outcome = distil("train", answers, "-o", "t.training", "--width", 128)
    assert outcome.code == 3
    assert outcome.err.startswith(f"error: a draft of width 128 is wider than target {target}, which has 64")


def test_a_training_is_for_targets_of_its_vocabulary_alone(distil: Distil, answers: Path, tmp_path: Path) -> None:
    trained(distil, answers, epochs=1)
    other = attention_toy(3.0, extra=[b"more"]).write(tmp_path / "other.gguf")
    outcome = distil("export", "t.training", "-o", "draft.gguf", "-m", other)
    assert outcome.code == 2
    assert outcome.err.startswith("error: training t.training is for a target with another vocabulary than that of")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-o", "t.training"], "error: t.training is there and is no GGUF file"),
        (["-o", "folder"], "error: draft folder cannot be written: Is a directory"),
        (["-o", "missing/draft.gguf"], "error: draft missing/draft.gguf cannot be written: No such file or directory"),
        (["-o", "draft.gguf", "--type", "q6_k"], "error: a draft of width 64 cannot have type q6_k"),
        (["-o", "draft.gguf", "--embedding-type", "q4_k"], "error: a draft of width 64 cannot have type q4_k"),
    ],
)
def test_a_draft_that_cannot_be_written_is_one_line_and_nothing_is_lost(
    distil: Distil, answers: Path, arguments: list[str], complaint: str
) -> None:
    trained(distil, answers, epochs=1)
    Path("folder").mkdir()
    before = sorted(Path().iterdir())
    outcome = distil("export", "t.training", *arguments)
    assert outcome.code == 2
    assert outcome.err.startswith(complaint)
    assert sorted(Path().iterdir()) == before


def test_a_draft_never_replaces_its_target(distil: Distil, answers: Path, target: Path) -> None:
    trained(distil, answers, epochs=1)
    outcome = distil("export", "t.training", "-o", target)
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, f"error: draft {target} would replace its target")
    assert read_vocabulary(target, "target")
