"""`specdec models`: the pairs that have names, their files, and whether they work here."""

from typing import Annotated, Final

import typer

from specdec_cli.commands import options
from specdec_cli.commands.choosing import choose_pair, pull
from specdec_cli.commands.completing import pair_names
from specdec_cli.commands.option_kinds import option
from specdec_cli.errors import EXIT_MODEL, EXIT_OK, ModelError, UsageError

NAMED: Final = "NAME"

models = typer.Typer(
    help="List, check, fetch and name pairs of a target and its draft.", no_args_is_help=True, rich_markup_mode="rich"
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a pair.", autocompletion=pair_names)]
NameOrDefault = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A pair of models.toml; else its default.", autocompletion=pair_names),
]
NewTarget = Annotated[
    str,
    option("-m", "--target", panel=options.MODELS, metavar="FILE", help="A GGUF file, or hub:OWNER/NAME/FILE."),
]
NewDraft = Annotated[
    str,
    option("-d", "--draft", panel=options.MODELS, metavar="DRAFT", help="Likewise, or any other -d of generate."),
]
Notes = Annotated[str, option("--notes", panel=options.MODELS, metavar="TEXT", help="What show says about it.")]
Force = Annotated[bool, option("--force", panel=options.MODELS, help="Replace an own pair of that name.")]
Json = Annotated[bool, option("--json", panel=options.OUTPUT, help="JSON on stdout.")]


@models.command("list")
def list_pairs(
    config: options.Config = None, json: Json = False, quiet: options.Quiet = False, debug: options.Debug = False
) -> int:
    """All pairs: size, licence, whether the files are here and would fit in memory. A star marks the default."""
    from specdec_cli.json_line import to_line
    from specdec_cli.pairs.entries import list_entries
    from specdec_cli.pairs.json import entry_to_json
    from specdec_cli.pairs.view import to_listing
    from specdec_cli.terminal import Terminal

    terminal, entries = Terminal.of_process(quiet=quiet), list_entries(config)
    text = to_line([entry_to_json(each) for each in entries]) if json else to_listing(entries, terminal)
    terminal.write_text(text)
    return EXIT_OK


@models.command()
def show(
    name: NameOrDefault = None,
    target: options.Target = None,
    draft: options.Draft = None,
    config: options.Config = None,
    json: Json = False,
    debug: options.Debug = False,
) -> int:
    """All that is known of one pair."""
    from specdec_cli.json_line import to_line
    from specdec_cli.pairs.entries import describe_files, find_entry
    from specdec_cli.pairs.json import entry_to_json
    from specdec_cli.pairs.words import to_details
    from specdec_cli.terminal import Terminal

    by_hand = target is not None or draft is not None
    entry = (
        describe_files(choose_pair(name, target, draft, config, named=NAMED)) if by_hand else find_entry(name, config)
    )
    Terminal.of_process().write_text(to_line(entry_to_json(entry)) if json else to_details(entry))
    return EXIT_OK


@models.command()
def path(
    name: NameOrDefault = None,
    target: options.Target = None,
    draft: options.Draft = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> int:
    """Where its model files are, one a line, the target first; exit code 3 if one is missing."""
    from specdec_cli.catalog import is_here
    from specdec_cli.terminal import Terminal

    pair = choose_pair(name, target, draft, config, named=NAMED)
    files = [each for each in (pair.target, pair.draft_model) if each is not None]
    for each in files:
        if not is_here(each):
            raise ModelError(f"{each} does not exist", hint="check the path")
    Terminal.of_process().write_text("".join(f"{each.absolute()}\n" for each in files))
    return EXIT_OK


@models.command()
def add(
    name: Name,
    target: NewTarget,
    draft: NewDraft = "lookup",
    draft_tokens: options.DraftTokens = None,
    notes: Notes = "",
    force: Force = False,
    config: options.Config = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> int:
    """Give a pair a name, in your own models.toml."""
    from specdec_cli.pair_list import own_table
    from specdec_cli.pairs.new import to_entry
    from specdec_cli.pairs.writing import add_pair
    from specdec_cli.terminal import Terminal

    entry = to_entry(name, target, draft, draft_tokens, notes)
    add_pair(own_table(config), name, entry, replace=force)
    Terminal.of_process(quiet=quiet).notice(f'"{name}" is in {own_table(config)} now')
    return EXIT_OK


@models.command()
def remove(
    name: Name, config: options.Config = None, quiet: options.Quiet = False, debug: options.Debug = False
) -> int:
    """Take a pair out of your own models.toml; its files stay."""
    from specdec_cli.pair_list import own_table, read_catalog
    from specdec_cli.pairs.entries import find_entry
    from specdec_cli.pairs.writing import remove_pair
    from specdec_cli.terminal import Terminal

    if not find_entry(name, config).own:
        raise UsageError(
            f'"{name}" is a shipped pair, which cannot be removed',
            hint="an own pair of the same name takes its place: specdec models add",
        )
    remove_pair(own_table(config), name)
    left = read_catalog(config)
    more = "; the shipped pair of that name counts again" if name in left.pairs else ""
    Terminal.of_process(quiet=quiet).notice(f'"{name}" is out of {own_table(config)}{more}')
    return EXIT_OK


@models.command()
def default(
    name: NameOrDefault = None,
    config: options.Config = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> int:
    """Make NAME the pair that is used when none is named; without NAME, say which one that is."""
    from specdec_cli.pair_list import own_table, read_catalog
    from specdec_cli.pairs.writing import set_default
    from specdec_cli.terminal import Terminal

    terminal, chosen = Terminal.of_process(quiet=quiet), read_catalog(config).find(name)[0]
    if name is None:
        terminal.write_text(f"{chosen}\n")
    else:
        set_default(own_table(config), name)
        terminal.notice(f'"{name}" is the default now, in {own_table(config)}')
    return EXIT_OK


@models.command()
def check(
    name: NameOrDefault = None,
    target: options.Target = None,
    draft: options.Draft = None,
    config: options.Config = None,
    ctx_size: options.CtxSize = None,
    cache_type_k: options.CacheTypeK = "f16",
    cache_type_v: options.CacheTypeV = "f16",
    json: Json = False,
    debug: options.Debug = False,
) -> int:
    """Whether a pair can work, by the metadata of its files alone; exit code 3 if it cannot."""
    from specdec_cli.json_line import to_line
    from specdec_cli.pairs.check import CheckOptions, check_pair
    from specdec_cli.pairs.json import report_to_json
    from specdec_cli.pairs.words import to_report
    from specdec_cli.terminal import Terminal

    pair = choose_pair(name, target, draft, config, named=NAMED)
    report = check_pair(pair, CheckOptions(ctx_size, cache_type_k, cache_type_v))
    Terminal.of_process().write_text(to_line(report_to_json(report)) if json else to_report(report))
    return EXIT_MODEL if report.obstacle else EXIT_OK


@models.command("pull")
def pull_files(
    name: NameOrDefault = None,
    config: options.Config = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> int:
    """Fetch the files of a pair from the hub. An interrupted one goes on where it stopped."""
    from specdec_cli.pairs.entries import find_entry
    from specdec_cli.pairs.words import size_in_words
    from specdec_cli.terminal import Terminal

    terminal, entry = Terminal.of_process(quiet=quiet), find_entry(name, config)
    pull(entry, terminal)
    terminal.notice(f"{entry.name} is here, {size_in_words(find_entry(entry.name, config).size)}")
    return EXIT_OK
