"""Teaching a network what a target could have said, an epoch after the other, with checkpoints to go on from."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.distil.answers import Answer
from specdec_cli.distil.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from specdec_cli.distil.lessons import Batch, Course
from specdec_cli.distil.losses import Disagreement
from specdec_cli.distil.network import Network
from specdec_cli.distil.optimizing import Optimizer
from specdec_cli.distil.validating import Agreement, agree
from specdec_cli.errors import UsageError

KEPT_OUT: Final = 50
"""Every so many-th answer is not learned from: it says how well others are guessed."""
OVERLAP: Final = 0.5
OVERLAP_FROM: Final = 0.3
"""The share that α has in the loss, once this share of the training is done: 0.222 -> 0.229 after 160 batches."""
SECONDS_BETWEEN: Final = 300
"""Of work that are lost at most when a training is killed."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How to train: `epochs` over all answers, in batches of `size` windows of `window` tokens.

    Few windows, since steps are what it lacks: as many answers left the loss at 5.9 in batches of 8, at 5.1 of 2.
    """

    epochs: int
    seed: int
    size: int = 2
    window: int = 1024
    dropout: float = 0.1


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a training is: `share` of all is done. At the end of an epoch there is an `agreement` with the target."""

    epoch: int
    share: float
    loss: float
    rate: float
    """Tokens a second."""
    agreement: Agreement | None = None


class Training:
    """A network that learns from `answers`. Iterate it for its progress; what `path` holds is gone on from."""

    def __init__(
        self, path: Path, fresh: Checkpoint, answers: Sequence[Answer], schedule: Schedule, device: str
    ) -> None:
        self.path, self.schedule, self.device = path, schedule, device
        self._at = at = _resumed(path, fresh) if path.exists() else fresh
        learned = [each for each in answers if each.number % KEPT_OUT]
        self._kept_out = [each for each in answers if each.number % KEPT_OUT == 0]
        self._course = Course(learned, at.vocabulary, window=schedule.window)
        self._batches = self._course.count(schedule.size)
        if not (self._batches and self._kept_out):
            raise UsageError("there are too few answers to learn from", hint="let specdec distil generate go on")
        self._network = Network(at.shape, at.vocabulary.rows, schedule.dropout)
        self._network.load_state_dict(at.network)
        self._network.to(device)
        self._optimizer = Optimizer(self._network)
        if at.optimizer:
            self._optimizer.restore(at.optimizer)
        self._bias = torch.zeros(at.vocabulary.rows, device=device)
        self._bias[-1] = math.log(max(at.vocabulary.others, 1))
        self.epoch, self.batch, self.alpha, self._best = at.epoch, at.batch, at.alpha, at.best

    @property
    def done(self) -> float:
        """The share of all epochs."""
        return (self.epoch + self.batch / self._batches) / self.schedule.epochs

    def __iter__(self) -> Iterator[Progress]:
        saved = time.monotonic()
        while self.epoch < self.schedule.epochs:
            luck = np.random.default_rng([self.schedule.seed, self.epoch])
            for index, batch in enumerate(self._course.batches(self.schedule.size, luck)):
                if index < self.batch:
                    continue
                started = time.monotonic()
                loss = self._learn(batch)
                self.batch += 1
                yield Progress(self.epoch, self.done, loss, batch.tokens.size / (time.monotonic() - started))
                if time.monotonic() - saved > SECONDS_BETWEEN:
                    self.save()
                    saved = time.monotonic()
            found = agree(self._network, self._kept_out, self._at.vocabulary, SamplingChain())
            self.epoch, self.batch = self.epoch + 1, 0
            if found.alpha > self.alpha:
                self.alpha, self._best = found.alpha, _state(self._network)
            self.save()
            yield Progress(self.epoch - 1, self.done, loss, 0.0, found)

    def save(self) -> None:
        """Write a checkpoint.

        Raises:
            UsageError: it cannot be written.
        """
        write_checkpoint(
            self.path,
            Checkpoint(
                shape=self._at.shape,
                vocabulary=self._at.vocabulary,
                schedule=asdict(self.schedule),
                epoch=self.epoch,
                batch=self.batch,
                network=_state(self._network),
                optimizer=self._optimizer.state(),
                best=self._best,
                alpha=self.alpha,
            ),
        )

    def _learn(self, batch: Batch) -> float:
        """Take one step; the loss before it. What it drops depends on where it is alone, also in a resumed training."""
        torch.manual_seed(hash((self.schedule.seed, self.epoch, self.batch)))
        tokens, places, likely, logprobs = (
            torch.from_numpy(each).to(self.device)
            for each in (batch.tokens, batch.places, batch.likely, batch.logprobs)
        )
        with torch.autocast(self.device, torch.bfloat16):
            states = self._network(tokens).flatten(0, 1)[places].float()
        chances = logprobs.exp().masked_fill(likely == self._at.vocabulary.rows - 1, 0)
        chances = chances / chances.sum(dim=1, keepdim=True).clamp_min(1e-6)
        share = OVERLAP if self.done >= OVERLAP_FROM else 0.0
        loss = Disagreement.apply(states, self._network.token_embd.weight, self._bias, likely, chances, share)
        self._optimizer.step(loss, self.done)
        return float(loss.detach())


def _resumed(path: Path, fresh: Checkpoint) -> Checkpoint:
    """What is in `path`, if it is the same training as the `fresh` one."""
    found = read_checkpoint(path)
    if (found.shape, found.schedule) != (fresh.shape, fresh.schedule):
        raise UsageError(
            f"training {path} has another shape or schedule", hint="name another file with -o, or repeat its options"
        )
    return found


def _state(network: Network) -> dict[str, Tensor]:
    return {name: weight.detach().cpu().clone() for name, weight in network.state_dict().items()}
