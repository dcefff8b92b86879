"""Which pair a command is about, and what to do when its files are not here yet."""

from pathlib import Path
from typing import TYPE_CHECKING

from specdec_cli.errors import UsageError

if TYPE_CHECKING:
    from specdec_cli.catalog import Pair
    from specdec_cli.pairs.entries import Entry
    from specdec_cli.terminal import Terminal


def choose_pair(
    name: str | None, target: Path | None, draft: str | None, config: Path | None, *, named: str = "--pair"
) -> "Pair":
    """The pair that the options stand for: files given by hand, or one of models.toml with another draft.

    `named` is how the command calls the option or argument for a pair's name.

    Raises:
        UsageError: the options contradict each other, or name no pair.
        NotFetchedError: a file of the pair is still at the hub.
        ModelError: a file of the pair is not on this machine.
    """
    from specdec_cli.catalog import find_pair, pair_of_file, to_draft

    given = None if draft is None else to_draft(draft, Path())
    if target is not None:
        if name is not None:
            raise UsageError(f"{named} and --target both name the big model", hint="give one of them")
        if config is not None:
            raise UsageError("--config is about pairs, and --target names a file", hint="give one of them")
        return pair_of_file(target, given)
    return find_pair(name, config, given)


def choose_pair_or_pull(
    name: str | None, target: Path | None, draft: str | None, config: Path | None, terminal: "Terminal"
) -> "Pair":
    """As `choose_pair`; a person at the terminal is asked whether to fetch what is missing. Enter means no.

    Raises:
        UsageError: as `choose_pair`.
        ModelError: a file is not on this machine, and is not wanted or cannot be had.
        KeyboardInterrupt: Ctrl-C at the question or while fetching.
    """
    from specdec_cli.catalog import NotFetchedError
    from specdec_cli.pairs.entries import find_entry

    try:
        return choose_pair(name, target, draft, config)
    except NotFetchedError as missing:
        asks = terminal.reads_keys and terminal.shows_messages and not terminal.quiet
        entry = find_entry(missing.pair, config)
        if not asks or not _agrees(entry, terminal):
            raise
        pull(entry, terminal)
    return choose_pair(name, target, draft, config)


def pull(entry: "Entry", terminal: "Terminal") -> None:
    """Fetch what is missing of `entry`, with a bar on a terminal.

    Raises:
        ModelError: a file cannot be had.
        KeyboardInterrupt: Ctrl-C; what has come so far is kept.
    """
    from specdec_cli.pairs.pulling import pull_pair
    from specdec_cli.render import to_progress
    from specdec_cli.status import StatusLine

    status = StatusLine(terminal)
    try:
        pull_pair(entry, lambda task, share: status.show_loading(to_progress(task, share)))
    finally:
        status.close()


def _agrees(entry: "Entry", terminal: "Terminal") -> bool:
    from specdec_cli.pairs.words import size_in_words
    from specdec_cli.terminal import ONE_LINE

    name = str(entry.name).translate(ONE_LINE)
    terminal.write_message(f"{name} is not on this machine. Fetch it now ({size_in_words(entry.missing)})? [y/N] ")
    answer = b""
    try:
        answer = terminal.stdin.readline()
    finally:
        if not answer:  # Ctrl-D or Ctrl-C, after which the line is still open
            terminal.write_message("\n")
    return answer.strip().lower() in (b"y", b"yes")
