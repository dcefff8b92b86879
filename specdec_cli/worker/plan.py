"""What a worker is to serve, and how, as it is handed to the process that does."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from specdec_cli.worker.address import Address


@dataclass(frozen=True, slots=True)
class Plan:
    """`devices` are names, none for the default. With `caches` the tensors go into the current folder."""

    host: str
    port: int
    devices: tuple[str, ...]
    threads: int | None
    caches: bool
    verbose: bool

    @property
    def address(self) -> Address:
        """Where it listens."""
        return Address(self.host, self.port)

    def to_text(self) -> str:
        """The plan as an argument of a program."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """What `to_text` made a text of."""
        values = json.loads(text)
        return cls(**{**values, "devices": tuple(values["devices"])})
