"""The file of a training: the network as it is and as it was best, and all that is needed to go on."""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import torch

from specdec_cli.distil.lessons import Vocabulary
from specdec_cli.distil.shape import Shape
from specdec_cli.errors import UsageError
from specdec_cli.files import read_file, replace_file

TITLE: Final = "training 1"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """States of `network` and `optimizer` after `batch` batches of epoch `epoch` over `answers` answers.

    `owner` is the fingerprint of the target's vocabulary, of which `vocabulary` is what the draft knows. `best` is
    the network that agreed most with the target, by `alpha`. `schedule` holds what must stay as it is.
    """

    owner: str
    shape: Shape
    vocabulary: Vocabulary
    schedule: dict[str, Any]
    answers: int
    epoch: int
    batch: int
    network: dict[str, Any]
    optimizer: list[dict[str, Any]]
    best: dict[str, Any]
    alpha: float


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Put `checkpoint` in the place of the file `path`.

    Raises:
        UsageError: it cannot be written; what was there stays.
    """
    content = io.BytesIO()
    values = {each.name: getattr(checkpoint, each.name) for each in fields(checkpoint)}
    values["shape"] = asdict(checkpoint.shape)
    values["vocabulary"] = {"known": torch.from_numpy(checkpoint.vocabulary.known), "size": checkpoint.vocabulary.size}
    torch.save({"specdec": TITLE, **values}, content)
    try:
        replace_file(path, content.getvalue())
    except OSError as error:
        raise UsageError(f"training {path} cannot be written: {error.strerror}") from None


def read_checkpoint(path: Path) -> Checkpoint:
    """What `write_checkpoint` wrote.

    Raises:
        UsageError: the file cannot be read, or is something else.
    """
    try:
        found = torch.load(io.BytesIO(read_file(path)), map_location="cpu", weights_only=True)
        if found.pop("specdec") != TITLE:
            raise KeyError
        vocabulary = Vocabulary(found["vocabulary"]["known"].numpy(), found["vocabulary"]["size"])
        return Checkpoint(**{**found, "shape": Shape(**found["shape"]), "vocabulary": vocabulary})
    except OSError as error:
        raise UsageError(f"cannot read training {path}: {error.strerror}") from None
    except Exception:  # torch raises whatever its readers of zip and pickle do
        raise UsageError(f"{path} is no training of specdec distil, or is damaged", hint="name another file") from None
