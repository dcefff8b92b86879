"""`specdec trace`: what a file of --trace says, round by round, in sums, and as a page."""

from pathlib import Path
from typing import Annotated, Final

import typer

from specdec_cli.commands import options
from specdec_cli.commands.option_kinds import option, whole
from specdec_cli.errors import EXIT_OK, UsageError

WHICH: Final = "Which rounds"

trace = typer.Typer(
    help="Read what --trace wrote: round by round, in sums, or as a page.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

TraceFile = Annotated[Path, typer.Argument(metavar="FILE", help="What generate, chat or bench wrote with --trace.")]
Answer = Annotated[
    int | None, whole("--answer", low=1, panel=WHICH, help="Only the N-th answer of the file, the first being 1.")
]
Round = Annotated[int | None, whole("--round", low=0, panel=WHICH, help="Only round N, the first being 0.")]
Page = Annotated[
    Path | None,
    option("-o", "--output", panel=options.OUTPUT, metavar="FILE", help="Write the page to FILE. Default: stdout."),
]
Json = Annotated[bool, option("--json", panel=options.OUTPUT, help="One JSON object.")]


@trace.command()
def show(
    file: TraceFile,
    answer: Answer = None,
    round_: Round = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> int:
    """Each round: what was drafted, with p, q and what decided, and what came out."""
    from specdec_cli.terminal import Terminal
    from specdec_cli.traces.choosing import choose
    from specdec_cli.traces.reading import read_records
    from specdec_cli.traces.show import frame_of, to_blocks

    terminal = Terminal.of_process(quiet=quiet)
    records = choose(read_records(file, terminal.notice), file, answer, round_)
    for block in to_blocks(records, frame_of(terminal)):
        terminal.write_text(block)
    return EXIT_OK


@trace.command()
def summary(
    file: TraceFile,
    answer: Answer = None,
    json: Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> int:
    """What all rounds come to: acceptance by position, draft lengths, time, and what auto expected."""
    from specdec_cli.terminal import Terminal
    from specdec_cli.traces.choosing import choose
    from specdec_cli.traces.figures import to_json, to_text
    from specdec_cli.traces.reading import read_records
    from specdec_cli.traces.summary import summarise

    terminal = Terminal.of_process(quiet=quiet)
    sums = summarise(choose(read_records(file, terminal.notice), file, answer, None))
    terminal.write_text(to_json(sums) if json else to_text(sums))
    return EXIT_OK


@trace.command()
def html(file: TraceFile, output: Page = None, quiet: options.Quiet = False, debug: options.Debug = False) -> int:
    """One page that needs no network: the answer, and behind each token its round.

    [b]Example[/b]

    specdec trace html answer.trace -o answer.html
    """
    from specdec_cli.terminal import Terminal
    from specdec_cli.traces.page import to_page
    from specdec_cli.traces.reading import read_trace

    terminal = Terminal.of_process(quiet=quiet)
    if output is None and terminal.shows_text:
        raise UsageError("a page is for a browser, not for a terminal", hint=f"-o {file.stem}.html writes it there")
    page = to_page(read_trace(file, terminal.notice))
    if output is None:
        terminal.write_text(page)
    else:
        _write(output, page, file)
    return EXIT_OK


def _write(path: Path, page: str, source: Path) -> None:
    from specdec_cli.files import replace_file

    try:
        if path.exists() and path.samefile(source):
            raise UsageError(f"{path} is the trace itself", hint="name another file for the page")
        replace_file(path, page.encode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "no file can have that name"
        raise UsageError(f"cannot write page {path}: {reason}") from error
