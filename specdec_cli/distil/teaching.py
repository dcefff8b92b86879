"""What `specdec distil train` does: read answers, begin or go on with a training, and say how it goes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from specdec_cli.distil.answers import AnswerFile
from specdec_cli.distil.checkpoint import Checkpoint
from specdec_cli.distil.lessons import known_of
from specdec_cli.distil.network import Network
from specdec_cli.distil.pulse import Pulse
from specdec_cli.distil.shape import Shape
from specdec_cli.distil.starting import principal_embeddings
from specdec_cli.distil.training import Schedule, Training
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from specdec_cli.llama.gguf import read_vocabulary
from specdec_cli.status import StatusLine
from specdec_cli.terminal import ONE_LINE, Terminal


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
    training = _open(plan)
    status = StatusLine(terminal)
    pulse = Pulse(status)
    code = EXIT_OK
    try:
        for step in training:
            if step.agreement is not None:
                found = step.agreement
                status.notice(
                    f"epoch {step.epoch + 1}: loss {step.loss:.3f}; on answers kept out α {found.alpha:.3f}, "
                    f"the same likeliest token {found.top1:.3f}"
                )
            pulse.show(f"{step.share:.1%}, loss {step.loss:.3f}, {step.rate:,.0f} tokens a second")
    except KeyboardInterrupt:
        training.save()
        code = EXIT_INTERRUPTED
    finally:
        status.close(interrupted=code == EXIT_INTERRUPTED)
    name = str(plan.output).translate(ONE_LINE)
    rest = "" if code == EXIT_OK else "; the same command goes on from there"
    terminal.notice(f"{name}: {training.done:.0%} of {plan.epochs} epochs, α {training.alpha:.3f} at best{rest}")
    return code


def _open(plan: Plan) -> Training:
    if plan.device == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            "PyTorch finds no CUDA device here", hint="train on the CPU, or install a CUDA build of PyTorch"
        )
    vocabulary = read_vocabulary(plan.target, "target")
    answers = [answer for path in plan.answers for answer in AnswerFile(path, vocabulary.fingerprint)]
    compact = known_of(answers, len(vocabulary.tokens))
    shape, schedule = Shape(plan.width, plan.layers), Schedule(plan.epochs, plan.seed)
    torch.manual_seed(plan.seed)
    network = Network(shape, compact.rows)
    start = principal_embeddings(plan.target, compact, plan.width)
    state = {**network.state_dict(), "token_embd.weight": torch.from_numpy(start)}
    fresh = Checkpoint(shape, compact, asdict(schedule), 0, 0, state, [], state, 0.0)
    return Training(plan.output, fresh, answers, schedule, plan.device)
