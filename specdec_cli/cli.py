"""The Typer app, and the only place where an error becomes an exit.

Nothing heavy is imported here: `specdec --help` must not wait for numpy or llama.cpp.
"""

import os
import sys
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from specdec_cli.commands.generate import generate
from specdec_cli.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED, SpecdecError

app = typer.Typer(
    name="specdec",
    help="Run a big GGUF model faster with a small one that guesses ahead, without changing what it says.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done · 1 unexpected · 2 usage or configuration · 3 model cannot be used · 130 Ctrl-C",
)
app.command(no_args_is_help=False)(generate)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"specdec {version('specdec-cli')}")
        raise typer.Exit


@app.callback()
def specdec(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Make `generate` a command of a group, and carry `--version`."""


def main() -> None:
    """Run the command line of this process and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run `arguments`; the exit code. Every failure ends here as one line on stderr."""
    try:
        code = app(arguments, prog_name="specdec", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else EXIT_OK
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (SpecdecError, typer.TyperException) as error:
        return _report(error, debug="--debug" in arguments)
    except Exception as error:
        return _report_unexpected(error, debug="--debug" in arguments)


def _report(error: SpecdecError | typer.TyperException, *, debug: bool) -> int:
    """One line for an expected failure; typer's own are usage errors."""
    from specdec_cli.terminal import Terminal

    if debug:
        traceback.print_tb(error.__traceback__)
    if isinstance(error, SpecdecError):
        Terminal.of_process().error(error.message, error.hint)
    elif message := error.format_message():
        Terminal.of_process().error(message, "see specdec generate --help")
    return error.exit_code


def _report_unexpected(error: Exception, *, debug: bool) -> int:
    """Where a program error happened. Its message stays out of it: it may hold text of the user's."""
    from specdec_cli.terminal import PipeClosedError, Terminal

    if isinstance(error, PipeClosedError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    if debug:
        traceback.print_tb(error.__traceback__)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    hint = "this is a fault of specdec; please report it" + ("" if debug else ", with what --debug shows")
    Terminal.of_process().error(f"unexpected {type(error).__name__} at {where}", hint)
    return EXIT_UNEXPECTED
