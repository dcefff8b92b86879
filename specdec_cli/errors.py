"""The errors that a user can cause, and the exit codes that scripts can rely on.

Every expected failure is a SpecdecError: one line that names the thing and the reason, and a hint that
names the way out. `cli` is the only place that turns one into an exit.
"""

from typing import Final

EXIT_OK: Final = 0
EXIT_UNEXPECTED: Final = 1
EXIT_AUDIT_FAILED: Final = 1
"""The same number: to a script both mean that the result is not to be relied on."""
EXIT_USAGE: Final = 2
EXIT_MODEL: Final = 3
EXIT_INTERRUPTED: Final = 130


class SpecdecError(Exception):
    """An expected failure; `message` is one line, `hint` is the way out (may be empty)."""

    exit_code: int = EXIT_UNEXPECTED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SpecdecError):
    """The command line, a prompt or a configuration file is wrong: exit code 2."""

    exit_code = EXIT_USAGE


class ModelError(SpecdecError):
    """A model or a pair cannot be used: exit code 3."""

    exit_code = EXIT_MODEL
