"""`specdec table`: making and looking at the tables of n-grams that `--draft table:FILE` guesses from."""

import secrets
from pathlib import Path
from typing import Annotated, Final

import typer

from specdec_cli.commands import options
from specdec_cli.commands import sampling_options as sampling
from specdec_cli.commands.choosing import choose_pair
from specdec_cli.commands.option_groups import EngineOptions, grouped
from specdec_cli.commands.option_kinds import option, whole
from specdec_cli.errors import EXIT_OK, UsageError

TABLE: Final = "Table"
MEGABYTE: Final = 1_000_000
ANSWER_TOKENS: Final = 320

table = typer.Typer(help="Tables of n-grams, drafts that need no model.", no_args_is_help=True)

Files = Annotated[list[str], typer.Argument(metavar="FILE", help="Texts to learn from; - is standard input.")]
Tables = Annotated[list[Path], typer.Argument(metavar="TABLE", help="Tables of one vocabulary.")]
Shown = Annotated[Path, typer.Argument(metavar="TABLE", help="A table.")]
Output = Annotated[Path, option("-o", "--output", panel=TABLE, metavar="TABLE", help="The table to write.")]
FromTarget = Annotated[
    bool,
    option("--from-target", panel=TABLE, help="FILE holds prompts, one a line: learn the target's answers to them."),
]
Extend = Annotated[bool, option("--extend", panel=TABLE, help="Add to what the table already holds.")]
Order = Annotated[int, whole("--order", low=2, high=8, panel=TABLE, help="Learn from up to N tokens in a row.")]
MaxSize = Annotated[
    int, whole("--max-size", low=1, high=1000, panel=TABLE, help="Of the file, in MB: rare n-grams go.")
]
AnswerTokens = Annotated[
    int | None, whole("-n", "--max-tokens", low=1, panel=TABLE, help="With --from-target, of an answer. Default: 320.")
]


@table.command(no_args_is_help=True)
@grouped
def build(
    files: Files,
    output: Output,
    *,
    from_target: FromTarget = False,
    extend: Extend = False,
    order: Order = 4,
    max_size: MaxSize = 8,
    max_tokens: AnswerTokens = None,
    pair: options.PairName = None,
    target: options.Target = None,
    draft: options.Draft = None,
    config: options.Config = None,
    seed: sampling.Seed = -1,
    temperature: sampling.Temperature = None,
    engine: EngineOptions,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> int:
    """Learn a table from texts like the answers to come, or from the target's own answers.

    [b]Examples[/b]

    specdec table build -m big.gguf -o python.ngrams src/*.py

    specdec table build --from-target -m big.gguf -o big.ngrams questions.txt

    specdec generate -m big.gguf -d table:big.ngrams [green]"Why is the sky blue?"[/]
    """
    from specdec_cli.table_making import Plan, make_table
    from specdec_cli.terminal import Terminal

    only_for_answers = {"--max-tokens": max_tokens, "--temperature": temperature, "--draft": draft}
    for name, given in only_for_answers.items():
        if given is not None and not from_target:
            raise UsageError(f"{name} is about answers", hint="use it with --from-target, or leave it out")
    plan = Plan(
        pair=choose_pair(pair, target, draft if from_target else "none", config),
        settings=engine.to_settings(),
        files=tuple(files),
        output=output,
        from_target=from_target,
        extend=extend,
        order=order,
        max_bytes=max_size * MEGABYTE,
        max_tokens=max_tokens or ANSWER_TOKENS,
        chain={} if temperature is None else {"temperature": temperature},
        seed=seed if seed >= 0 else secrets.randbelow(2**32),
    )
    return make_table(plan, Terminal.of_process(quiet=quiet), verbose=verbose)


@table.command(no_args_is_help=True)
def merge(
    tables: Tables,
    output: Output,
    max_size: MaxSize = 8,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> int:
    """Add tables up to one."""
    from specdec_cli.core.ngram_counts import merge as added
    from specdec_cli.ngram_file import read_ngrams
    from specdec_cli.table_making import check_output, write_table
    from specdec_cli.terminal import Terminal

    check_output(output)
    (whole_table, fingerprint), *others = [read_ngrams(path) for path in tables]
    for path, (other, theirs) in zip(tables[1:], others, strict=True):
        if theirs != fingerprint:
            raise UsageError(f"tables {tables[0]} and {path} are about different vocabularies")
        whole_table = added(whole_table, other)
    write_table(output, whole_table, fingerprint, max_size * MEGABYTE, Terminal.of_process(quiet=quiet))
    return EXIT_OK


@table.command(no_args_is_help=True)
def show(path: Shown, debug: options.Debug = False) -> int:
    """Say what a table holds."""
    from specdec_cli.ngram_file import read_ngrams
    from specdec_cli.table_making import describe
    from specdec_cli.terminal import Terminal

    shown, _ = read_ngrams(path)
    Terminal.of_process(quiet=False).write_text(f"{describe(path, shown)}\n")
    return EXIT_OK
