"""Teaching a network what a target could have said, an epoch after the other, with checkpoints to go on from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from specdec_cli.distil.agreement import Agreement, agree
from specdec_cli.distil.answers import Answer
from specdec_cli.distil.checkpoint import Checkpoint, write_checkpoint
from specdec_cli.distil.lessons import Batch, Course
from specdec_cli.distil.losses import Disagreement
from specdec_cli.distil.network import Network
from specdec_cli.distil.optimizing import Optimizer
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
class Step:
    """A batch was learned: `share` of the training is done, at `rate` tokens a second."""

    share: float
    loss: float
    rate: float


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch, from 1, is over; `agreement` is that on answers that are not learned from."""

    number: int
    agreement: Agreement


class Training:
    """A network that goes on from a checkpoint, learning from `answers`. Iterate it for what happens.

    `check` is called between any two steps, to raise what ends it: all that was learned is then whole.

    Raises:
        UsageError: there are too few answers.
    """

    def __init__(
        self, start: Checkpoint, answers: Sequence[Answer], schedule: Schedule, device: str, check: Callable[[], object]
    ) -> None:
        self._now, self._schedule, self._device, self._check = start, schedule, device, check
        learned = [each for each in answers if each.number % KEPT_OUT]
        self._kept_out = [each for each in answers if each.number % KEPT_OUT == 0]
        self._course = Course(learned, start.vocabulary, window=schedule.window)
        self._batches = self._course.count(schedule.size)
        if not (self._batches and self._kept_out):
            raise UsageError("there are too few answers to learn from", hint="let specdec distil generate go on")
        self._network = Network(start.shape, start.vocabulary.rows, schedule.dropout)
        self._network.load_state_dict(start.network)
        self._network.to(device)
        self._optimizer = Optimizer(self._network)
        if start.optimizer:
            self._optimizer.restore(start.optimizer)
        self._bias = torch.zeros(start.vocabulary.rows, device=device)
        self._bias[-1] = math.log(max(start.vocabulary.others, 1))
        self.epoch, self.batch, self.alpha, self._best = start.epoch, start.batch, start.alpha, start.best

    @property
    def done(self) -> float:
        """The share of all epochs."""
        return (self.epoch + self.batch / self._batches) / self._schedule.epochs

    def run(self, path: Path) -> Iterator[Step | Epoch]:
        """Train to the end, with checkpoints in the file `path`.

        Raises:
            UsageError: one cannot be written.
        """
        saved = time.monotonic()
        while self.epoch < self._schedule.epochs:
            luck = np.random.default_rng([self._schedule.seed, self.epoch])
            for index, batch in enumerate(self._course.batches(self._schedule.size, luck)):
                if index < self.batch:
                    continue
                self._check()
                started = time.monotonic()
                loss = self._learn(batch)
                self.batch += 1
                yield Step(self.done, loss, batch.tokens.size / (time.monotonic() - started))
                if time.monotonic() - saved > SECONDS_BETWEEN:
                    self.save(path)
                    saved = time.monotonic()
            found = agree(self._network, self._kept_out, self._now.vocabulary, self._check)
            if found.alpha > self.alpha:
                self.alpha, self._best = found.alpha, _state(self._network)
            self.epoch, self.batch = self.epoch + 1, 0
            self.save(path)
            yield Epoch(self.epoch, found)

    def save(self, path: Path) -> None:
        """Write a checkpoint into the file `path`.

        Raises:
            UsageError: it cannot be written.
        """
        now = replace(
            self._now,
            schedule=asdict(self._schedule),
            epoch=self.epoch,
            batch=self.batch,
            network=_state(self._network),
            optimizer=self._optimizer.state(),
            best=self._best,
            alpha=self.alpha,
        )
        write_checkpoint(path, now)

    def _learn(self, batch: Batch) -> float:
        """Take one step; the loss before it. What it drops depends on where it is alone, also in a resumed training."""
        torch.manual_seed(hash((self._schedule.seed, self.epoch, self.batch)))
        tokens, places, likely, logprobs = (
            torch.from_numpy(each).to(self._device)
            for each in (batch.tokens, batch.places, batch.likely, batch.logprobs)
        )
        with torch.autocast(self._device, torch.bfloat16):
            states = self._network(tokens).flatten(0, 1)[places].float()
        chances = logprobs.exp().masked_fill(likely == self._now.vocabulary.rows - 1, 0)
        chances = chances / chances.sum(dim=1, keepdim=True).clamp_min(1e-6)
        share = OVERLAP if self.done >= OVERLAP_FROM else 0.0
        loss = Disagreement.apply(states, self._network.token_embd.weight, self._bias, likely, chances, share)
        self._optimizer.step(loss, self.done)
        return float(loss.detach())


def _state(network: Network) -> dict[str, Tensor]:
    return {name: weight.detach().cpu().clone() for name, weight in network.state_dict().items()}
