"""What `specdec distil train` does: read answers, begin or go on with a training, and say how it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from specdec_cli.distil.answers import Answer, AnswerFile
from specdec_cli.distil.checkpoint import Checkpoint, read_checkpoint
from specdec_cli.distil.lessons import known_of
from specdec_cli.distil.network import Network
from specdec_cli.distil.places import checked
from specdec_cli.distil.pulse import Pulse
from specdec_cli.distil.shape import Shape
from specdec_cli.distil.starting import principal_embeddings
from specdec_cli.distil.training import Epoch, Schedule, Training
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from specdec_cli.llama.gguf import read_vocabulary
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.status import StatusLine
from specdec_cli.terminal import ONE_LINE, Terminal
from specdec_cli.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Plan:
    """Which answers of which target to learn from, how long, and what the draft is to be like."""

    target: Path
    answers: tuple[Path, ...]
    output: Path
    epochs: int
    width: int
    layers: int
    seed: int
    device: str


def teach(plan: Plan, terminal: Terminal) -> int:
    """Train to the end of the plan, or to Ctrl-C; the exit code.

    Raises:
        SpecdecError: an answer file, the target or the checkpoint cannot be used.
    """
    if plan.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("PyTorch finds no CUDA device here", hint="train on the CPU, or install a CUDA build")
    status, interrupt = StatusLine(terminal), Interrupt()
    code = EXIT_OK
    try:
        status.show_loading("reading answers")
        training = _open(plan, interrupt)
        with interrupt:
            _train(training, plan.output, status)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    finally:
        status.close(interrupted=code == EXIT_INTERRUPTED)
    name = str(plan.output).translate(ONE_LINE)
    rest = "" if code == EXIT_OK else "; the same command goes on from there"
    terminal.notice(f"{name}: {training.done:.0%} of {plan.epochs} epochs, α {training.alpha:.3f} at best{rest}")
    return code


def _train(training: Training, path: Path, status: StatusLine) -> None:
    """Ctrl-C ends it between two steps, and what was learned is kept."""
    pulse, losses = Pulse(status), list[float]()
    try:
        for event in training.run(path):
            if isinstance(event, Epoch):
                found, loss = event.agreement, sum(losses) / max(len(losses), 1)
                status.notice(
                    f"epoch {event.number}: loss {loss:.3f}; on answers kept out α {found.alpha:.3f}, "
                    f"the same likeliest token {found.top1:.3f}"
                )
                losses.clear()
            else:
                losses.append(event.loss)
                pulse.show(f"{event.share:.1%}, loss {event.loss:.3f}, {event.rate:,.0f} tokens a second")
    except KeyboardInterrupt:
        training.save(path)
        raise


def _open(plan: Plan, interrupt: Interrupt) -> Training:
    is_there = checked("training", plan.output).exists()
    vocabulary = read_vocabulary(plan.target, "target")
    answers = [answer for path in plan.answers for answer in AnswerFile(path, vocabulary.fingerprint)]
    schedule = Schedule(plan.epochs, plan.seed)
    found = read_checkpoint(plan.output) if is_there else None
    if found is None:
        start = _begun(plan, vocabulary, answers, schedule)
    else:
        _check_same(found, plan, vocabulary, schedule)
        # other answers come in another order, so an epoch that was begun is begun anew
        start = found if found.answers == len(answers) else replace(found, batch=0, answers=len(answers))
    return Training(start, answers, schedule, plan.device, interrupt.check)


def _check_same(found: Checkpoint, plan: Plan, vocabulary: Vocabulary, schedule: Schedule) -> None:
    if found.owner != vocabulary.fingerprint.hex():
        raise UsageError(f"training {plan.output} is for a target with another vocabulary", hint="name another file")
    if (found.shape, found.schedule) != (Shape(plan.width, plan.layers), asdict(schedule)):
        raise UsageError(
            f"training {plan.output} has another shape or schedule",
            hint="name another file with -o, or repeat its options",
        )


def _begun(plan: Plan, vocabulary: Vocabulary, answers: Sequence[Answer], schedule: Schedule) -> Checkpoint:
    if not answers:
        raise UsageError("there are too few answers to learn from", hint="let specdec distil generate go on")
    known = known_of(answers, len(vocabulary.tokens))
    shape = Shape(plan.width, plan.layers)
    torch.manual_seed(plan.seed)
    network = Network(shape, known.rows).state_dict()
    network["token_embd.weight"] = torch.from_numpy(principal_embeddings(plan.target, known, plan.width))
    owner = vocabulary.fingerprint.hex()
    return Checkpoint(owner, shape, known, asdict(schedule), len(answers), 0, 0, network, [], network, 0.0)
