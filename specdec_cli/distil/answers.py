"""The file of a target's answers: a line of JSON that says whose they are and to what, then a line for each answer.

An answer is its tokens, prompt included, and for each of its own tokens what else the target could have said: its
likeliest ids and their logarithms of probability, before any sampler. Lines are only ever added, so a run that was
broken off leaves at most one half a line, which the next one cuts off.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from specdec_cli.errors import UsageError
from specdec_cli.files import target_of

TITLE: Final = "answers 1"

Ids = npt.NDArray[np.int32]
Logprobs = npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Answer:
    """`tokens` [n] with the answer from `start` on, and for each of those the `likely` ids [n - start, k], best first.

    `logprobs` [n - start, k] are natural logarithms of the target's probabilities at temperature 1. `number` is which
    of the prompts it answers, counted on for each further time that all are asked.
    """

    number: int
    start: int
    tokens: Ids
    likely: Ids
    logprobs: Logprobs

    @property
    def length(self) -> int:
        """Tokens without the prompt."""
        return self.tokens.size - self.start

    def to_json(self) -> dict[str, Any]:
        """As a line of the file has it: arrays little-endian, in base64."""
        return {
            "number": self.number,
            "start": self.start,
            "tokens": _packed(self.tokens, "<i4"),
            "likely": _packed(self.likely, "<i4"),
            "logprobs": _packed(self.logprobs, "<f2"),
        }

    @classmethod
    def from_json(cls, line: dict[str, Any]) -> Self:
        """The answer of a line."""
        tokens = _unpacked(line["tokens"], "<i4")
        rows = tokens.size - line["start"]
        return cls(
            line["number"],
            line["start"],
            tokens,
            _unpacked(line["likely"], "<i4").reshape(rows, -1),
            _unpacked(line["logprobs"], "<f2").reshape(rows, -1),
        )


class AnswerFile:
    """Answers of a target whose vocabulary has `fingerprint`, in the file `path`."""

    def __init__(self, path: Path, fingerprint: bytes) -> None:
        self.path = path
        self._fingerprint = fingerprint

    def resume(self, asked: str) -> dict[int, int]:
        """The lengths of the answers that are there, by their numbers; a new file is begun.

        `asked` stands for all that answers depend on. A last line that is not whole is cut off.

        Raises:
            UsageError: it cannot be read or written, or holds something else, such as answers to something else.
        """
        head = _line({"specdec": TITLE, "vocabulary": self._fingerprint.hex(), "asked": asked})
        try:
            with target_of(self.path).open("ab+") as file:
                file.seek(0)
                first = file.readline()
                if first:
                    self._check_title(first)
                if not head.startswith(first):
                    self._check(first)
                    raise UsageError(
                        f"answers {self.path} are to other prompts, or by other settings", hint="name another file"
                    )
                if first != head:
                    file.truncate(0)
                    file.write(head)
                    return {}
                return self._lengths(file)
        except OSError as error:
            raise UsageError(f"answers {self.path} cannot be written: {error.strerror or error}") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"answers {self.path} are damaged", hint="name another file") from None

    def _lengths(self, file: Any) -> dict[int, int]:
        lengths: dict[int, int] = {}
        end = file.tell()
        for line in file:
            if not line.endswith(b"\n"):
                break
            answer = Answer.from_json(json.loads(line))
            lengths[answer.number] = answer.length
            end += len(line)
        file.truncate(end)
        return lengths

    def add(self, answer: Answer) -> None:
        """Write `answer` at the end.

        Raises:
            UsageError: the disk is full, or the like.
        """
        try:
            with self.path.open("ab") as file:
                file.write(_line(answer.to_json()))
        except OSError as error:
            raise UsageError(f"answers {self.path} cannot be written: {error.strerror}") from None

    def __iter__(self) -> Iterator[Answer]:
        """All answers that are whole.

        Raises:
            UsageError: the file cannot be read, is damaged, or is about another vocabulary.
        """
        try:
            with self.path.open("rb") as file:
                self._check(file.readline())
                for line in file:
                    if line.endswith(b"\n"):
                        yield Answer.from_json(json.loads(line))
        except OSError as error:
            raise UsageError(f"cannot read answers {self.path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"answers {self.path} are damaged", hint="generate them anew") from None

    def _check_title(self, line: bytes) -> None:
        if not line.startswith(_line({"specdec": TITLE})[:-2]):
            raise UsageError(f"{self.path} holds no answers of specdec distil", hint="name another file")

    def _check(self, line: bytes) -> None:
        self._check_title(line)
        if json.loads(line)["vocabulary"] != self._fingerprint.hex():
            raise UsageError(f"answers {self.path} are of a target with another vocabulary")


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _packed(array: npt.NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, kind).tobytes()).decode()


def _unpacked(text: str, kind: str) -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), kind)
