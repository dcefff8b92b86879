"""`specdec tune`: the fastest settings of a pair on this machine."""

from typing import Annotated, Final

from specdec_cli.commands import options
from specdec_cli.commands.choosing import choose_pair
from specdec_cli.commands.option_groups import EngineOptions, grouped
from specdec_cli.commands.option_kinds import LONGEST_WORK, option, whole

TUNING: Final = "Tuning"

TimeLimit = Annotated[
    int,
    whole("--time-limit", low=1, high=LONGEST_WORK, panel=TUNING, help="Seconds it may take; more of them find more."),
]
SaveAs = Annotated[
    str | None,
    option("--save-as", panel=TUNING, metavar="NAME", help="Write the result as a new pair of your own models.toml."),
]
DryRun = Annotated[bool, option("--dry-run", panel=TUNING, help="Show what would be written, and write nothing.")]


@grouped
def tune(
    pair: options.PairArgument = None,
    target: options.Target = None,
    draft: options.Draft = None,
    config: options.Config = None,
    time_limit: TimeLimit = 180,
    save_as: SaveAs = None,
    dry_run: DryRun = False,
    *,
    engine: EngineOptions,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> int:
    """Find the settings with which a pair is fastest here, and write them into your models.toml.

    It races who drafts, how far, the rule, the draft's temperature, threads and batch size on short answers, and says
    so if plain decoding is faster. A pair given by -m and -d is only written with --save-as.

    [b]Examples[/b]

    specdec tune

    specdec tune qwen3-8b --time-limit 600

    specdec tune -m big.gguf -d small.gguf --save-as coder
    """
    from specdec_cli.terminal import Terminal
    from specdec_cli.tune.saving import Place
    from specdec_cli.tune.tuner import Order, check_tunable
    from specdec_cli.tune.tuner import tune as run

    chosen = choose_pair(pair, target, draft, config, named="PAIR")
    check_tunable(chosen)
    by_hand = target is not None or draft is not None
    place = None
    if save_as is not None or not by_hand:
        place = Place(chosen, config, save_as, by_hand=by_hand, dry_run=dry_run)
    order = Order(chosen, engine.to_settings(), place, time_limit, dry_run, json, verbose)
    return run(order, Terminal.of_process(quiet=quiet))
