"""`specdec audit`: whether speculation changes nothing, on the user's own pair and build."""

from typing import Annotated, Final

from specdec_cli.commands import options
from specdec_cli.commands.choosing import choose_pair
from specdec_cli.commands.option_groups import EngineOptions, grouped
from specdec_cli.commands.option_kinds import LARGEST_SEED, LONGEST_WORK, number, option, whole
from specdec_cli.errors import EXIT_AUDIT_FAILED, EXIT_INTERRUPTED, EXIT_OK

AUDIT: Final = "Audit"

Seed = Annotated[
    int | None,
    whole("-s", "--seed", low=0, high=LARGEST_SEED, panel=AUDIT, help="Repeats an audit. Default: drawn, and shown."),
]
TimeLimit = Annotated[
    float,
    option(
        "--time-limit",
        panel=AUDIT,
        metavar="S",
        parser=number(float, "--time-limit", 0, LONGEST_WORK),
        help="Seconds, about. More find smaller faults.",
    ),
]


@grouped
def audit(
    pair: options.PairArgument = None,
    target: options.Target = None,
    draft: options.Draft = None,
    config: options.Config = None,
    seed: Seed = None,
    time_limit: TimeLimit = 60,
    *,
    engine: EngineOptions,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> int:
    """Check that a draft changes nothing of what the target says, in about a minute; exit code 1 if it does.

    [b]Examples[/b]

    specdec audit

    specdec audit -m big.gguf -d small.gguf --time-limit 600
    """
    from specdec_cli.audit.running import run_audit
    from specdec_cli.terminal import Terminal

    terminal = Terminal.of_process(quiet=quiet)
    chosen = choose_pair(pair, target, draft, config, named="PAIR")
    found = run_audit(chosen, engine.to_settings(), terminal, seed=seed, seconds=time_limit, json=json, verbose=verbose)
    if found.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_OK if found.passed else EXIT_AUDIT_FAILED
