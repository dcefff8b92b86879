"""`specdec bench`: how fast a pair is here, against plain decoding and against theory."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from specdec_cli.commands import options
from specdec_cli.commands import sampling_options as sampling
from specdec_cli.commands.choosing import choose_pair
from specdec_cli.commands.option_groups import EngineOptions, grouped
from specdec_cli.commands.option_kinds import LARGEST_SEED, number, option, whole
from specdec_cli.core.sampling.ranges import RANGES
from specdec_cli.errors import UsageError
from specdec_cli.limits import LONGEST_DRAFT, DraftTokens

BENCH: Final = "What is measured"
NAMED: Final = "PAIR"
LENGTHS: Final = "0,1,2,4,8,auto"
TEMPERATURES: Final = "0,1"
ANSWER_TOKENS: Final = 64
SECONDS: Final = 300
LONGEST_LIMIT: Final = 10**6
MOST_REPEATS: Final = 1000


def _listed(flag: str, parse: Callable[[str], Any], least: str) -> Callable[[str], Any]:
    """A parser of what `parse` reads, several by commas, each once."""

    def parse_all(given: str) -> tuple[Any, ...]:
        parts = [each.strip() for each in given.split(",")]
        if not all(parts):
            raise UsageError(f"{flag} {given or '(nothing)'} has a gap", hint=f"such as {flag} {least}")
        return tuple(dict.fromkeys(map(parse, parts)))

    return parse_all


def _length(given: str) -> DraftTokens:
    return "auto" if given == "auto" else number(int, "--draft-tokens", 0, LONGEST_DRAFT)(given)


Prompts = Annotated[
    Path | None,
    option("--prompts", panel=BENCH, metavar="FILE", help="Prompts as JSON lines. Default: code, prose and more."),
]
DraftTokensList = Annotated[
    Any,
    option(
        "-k",
        "--draft-tokens",
        panel=BENCH,
        metavar="N,…",
        help="Draft lengths to compare with plain decoding.",
        parser=_listed("--draft-tokens", _length, LENGTHS),
    ),
]
TemperatureList = Annotated[
    Any,
    option(
        "--temperature",
        panel=BENCH,
        metavar="X,…",
        help="Temperatures; 0 is greedy.",
        parser=_listed("--temperature", number(float, "--temperature", *RANGES["temperature"][:2]), TEMPERATURES),
    ),
]
Repeat = Annotated[
    int, whole("--repeat", low=1, high=MOST_REPEATS, panel=BENCH, help="Ask each prompt N times with each setting.")
]
AnswerTokens = Annotated[int, whole("-n", "--max-tokens", low=1, panel=BENCH, help="At most N tokens an answer.")]
TimeLimit = Annotated[
    int,
    whole(
        "--time-limit", low=0, high=LONGEST_LIMIT, panel=BENCH, help="Stop asking after N seconds; 0: when all is done."
    ),
]
Seed = Annotated[
    int,
    whole("-s", "--seed", low=-1, high=LARGEST_SEED - 10**6, panel=BENCH, help="Of the first turn; -1: random."),
]
Csv = Annotated[bool, option("--csv", panel=options.OUTPUT, help="A table for programs in place of the text.")]
Plot = Annotated[
    Path | None,
    option("--plot", panel=options.OUTPUT, metavar="FILE", help="Draw it too, into an .svg or .png file."),
]


@grouped
def bench(
    pair: options.PairArgument = None,
    *,
    target: options.Target = None,
    draft: options.Draft = None,
    config: options.Config = None,
    prompts: Prompts = None,
    draft_tokens: DraftTokensList = LENGTHS,
    temperature: TemperatureList = TEMPERATURES,
    rule: sampling.Rule = None,
    repeat: Repeat = 1,
    max_tokens: AnswerTokens = ANSWER_TOKENS,
    time_limit: TimeLimit = SECONDS,
    seed: Seed = 0,
    raw: options.Raw = False,
    engine: EngineOptions,
    json: options.Json = False,
    csv: Csv = False,
    plot: Plot = None,
    trace: options.Trace = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> int:
    """Measure a pair against plain decoding, beside what theory predicts, and say what to use here.

    [b]Examples[/b]

    specdec bench

    specdec bench -m big.gguf -d small.gguf --plot speed.svg

    specdec bench -m big.gguf -d lookup --prompts mine.jsonl -k 4,auto --csv > speed.csv
    """
    from specdec_cli.bench.benching import Form, Output
    from specdec_cli.bench.benching import bench as measured
    from specdec_cli.bench.picture import check_picture
    from specdec_cli.bench.plan import Plan
    from specdec_cli.bench.prompts import built_in, read_prompts
    from specdec_cli.terminal import Terminal

    if json and csv:
        raise UsageError("--json and --csv both want stdout", hint="give one of them")
    lengths = tuple(each for each in draft_tokens if each != 0)
    if not lengths:
        raise UsageError("--draft-tokens 0 is plain decoding alone", hint=f"such as --draft-tokens {LENGTHS}")
    if plot is not None:
        check_picture(plot)
    plan = Plan(
        prompts=built_in() if prompts is None else read_prompts(prompts),
        draft_tokens=lengths,
        temperatures=temperature,
        rule=rule,
        repeat=repeat,
        max_tokens=max_tokens,
        seed=seed if seed >= 0 else secrets.randbelow(2**32),
        time_limit=time_limit,
        raw=raw,
    )
    chosen = choose_pair(pair, target, draft, config, named=NAMED)
    form: Form = "json" if json else "csv" if csv else "table"
    output = Output(form, plot, trace, verbose)
    return measured(chosen, engine.to_settings(), plan, Terminal.of_process(quiet=quiet), output)
