"""The Typer app, and the only place where an error becomes an exit.

Nothing heavy is imported here: `specdec --help` must not wait for numpy or llama.cpp.
"""

import errno
import os
import re
import sys
import traceback
from pathlib import Path

import typer

from specdec_cli.commands import options
from specdec_cli.commands.audit import audit
from specdec_cli.commands.bench import bench
from specdec_cli.commands.chat import chat
from specdec_cli.commands.distil import distil
from specdec_cli.commands.doctor import doctor
from specdec_cli.commands.generate import generate
from specdec_cli.commands.models import models
from specdec_cli.commands.table import table
from specdec_cli.commands.theory import theory
from specdec_cli.commands.trace import trace
from specdec_cli.commands.tune import tune
from specdec_cli.commands.worker import worker
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED, EXIT_USAGE, SpecdecError

COMMANDS = (
    "generate",
    "chat",
    "models",
    "bench",
    "tune",
    "audit",
    "trace",
    "theory",
    "table",
    "distil",
    "worker",
    "doctor",
)
REINSTALL = "install specdec again: pip install --force-reinstall specdec-cli"

app = typer.Typer(
    name="specdec",
    help="Run a big GGUF model faster with a small one that guesses ahead, without changing what it says.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done · 1 unexpected, or a failed audit · 2 usage or configuration · 3 model cannot be used"
    " · 130 Ctrl-C",
)
app.command(no_args_is_help=False)(generate)
app.command(no_args_is_help=False)(chat)
app.add_typer(models, name="models")
app.command(no_args_is_help=False)(bench)
app.command(no_args_is_help=False)(tune)
app.command(no_args_is_help=False)(audit)
app.add_typer(trace, name="trace")
app.command(no_args_is_help=True)(theory)
app.add_typer(table, name="table")
app.add_typer(distil, name="distil")
app.command(no_args_is_help=False)(worker)
app.command(no_args_is_help=False)(doctor)


@app.callback()
def specdec(version: options.Version = False) -> None:
    """Make `generate` a command of a group, and carry `--version`."""


def main() -> None:
    """Run the command line of this process and exit."""
    _open_missing_streams()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run `arguments`; the exit code. Every failure ends here as one line on stderr."""
    flags = arguments[: arguments.index("--")] if "--" in arguments else arguments
    try:
        code = app(arguments, prog_name="specdec", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else EXIT_OK
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as left:  # how rich and typer take a closed pipe under their help; a shell reads a completion's
        return left.code if "_SPECDEC_COMPLETE" in os.environ and isinstance(left.code, int) else EXIT_OK
    except Exception as error:
        return _report(error, debug="--debug" in flags, usage=_usage(arguments))


def _usage(arguments: list[str]) -> str:
    """Where the help is that a usage error of `arguments` needs."""
    command = arguments[0] if arguments and arguments[0] in COMMANDS else COMMANDS[0]
    return f"specdec {command} --help"


def _open_missing_streams() -> None:
    """A caller may close any of the three (`>&-`); to Python it is None then, and the next file takes its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _report(error: Exception, *, debug: bool, usage: str) -> int:
    """One line for what went wrong, one for the way out; the exit code. A closed pipe is no failure."""
    try:
        from specdec_cli.terminal import PipeClosedError, Terminal
    except ImportError as missing:  # what shows errors needs numpy and rich itself
        sys.stderr.write(f"error: {missing.name or 'a library'} does not import: {missing}\nhint: {REINSTALL}\n")
        return EXIT_UNEXPECTED

    if isinstance(error, PipeClosedError):
        return EXIT_OK
    terminal = Terminal.of_process()
    if debug:
        terminal.write_message("".join(traceback.format_tb(error.__traceback__)))
    code, message, hint = _explain(error, debug=debug, usage=usage)
    if message:
        terminal.error(message, hint)
    return code


def _explain(error: Exception, *, debug: bool, usage: str) -> tuple[int, str, str]:
    """Exit code, message and hint. The message of a program error stays out: it may hold text of the user's."""
    if isinstance(error, SpecdecError):
        return error.exit_code, error.message, error.hint or (usage if error.exit_code == EXIT_USAGE else "")
    if isinstance(error, typer.TyperException):
        return EXIT_USAGE, _plain(error.format_message()), usage
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return EXIT_UNEXPECTED, f"the output cannot be written: {error.strerror}", "is the disk full?"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    hint = "this is a fault of specdec; please report it" + ("" if debug else ", with what --debug shows")
    return EXIT_UNEXPECTED, f"unexpected {type(error).__name__} at {where}", hint


def _plain(message: str) -> str:
    """What typer says, as our own messages say it."""
    message = re.sub(r"\s+", " ", message).strip().rstrip(".")
    return message[:1].lower() + message[1:]
