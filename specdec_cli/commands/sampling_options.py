"""The options that decide which token comes next: rule, seed, samplers, bias and grammar.

Those of the sampling chain are None where the user says nothing: the model file may bring its own.
"""

import math
from pathlib import Path
from typing import Annotated, Any, Final

from specdec_cli.commands.option_kinds import LARGEST_SEED, choice, number, option, some_text, whole
from specdec_cli.core.sampling.order import DEFAULT_ORDER, to_samplers
from specdec_cli.core.sampling.ranges import LARGEST_BIAS, RANGES
from specdec_cli.errors import UsageError
from specdec_cli.limits import RULES

SAMPLING: Final = "Sampling (llama.cpp's defaults, unless the model file has its own)"
REPETITION: Final = "Against repetition"


def _real(name: str, *, panel: str = SAMPLING, help: str) -> Any:
    """The option of the chain's number `name`."""
    flag = f"--{name.replace('_', '-')}"
    low, high, _ = RANGES[name]
    return option(flag, panel=panel, help=help, metavar="X", parser=number(float, flag, low, high))


def _count(name: str, *, low: int = 0, panel: str = SAMPLING, help: str) -> Any:
    """The option of the chain's number of tokens `name`."""
    return whole(f"--{name.replace('_', '-')}", low=low, panel=panel, help=help)


def _bias(given: str) -> tuple[str, float]:
    """TOKEN=±X, parted at the last =."""
    token, equals, text = given.rpartition("=")
    try:
        bias = float(text)
    except ValueError:
        bias = math.nan
    if not (equals and token) or math.isnan(bias):
        raise UsageError(
            f"--logit-bias {given} is not TOKEN=X", hint='such as --logit-bias " hello=-inf" or 15043=+1.5'
        )
    if not (abs(bias) <= LARGEST_BIAS or bias == -math.inf):
        raise UsageError(f"--logit-bias {given} is not in -{LARGEST_BIAS}..{LARGEST_BIAS}", hint="-inf bans the token")
    return token, bias


def _draft_temperature(given: str) -> str:
    if given not in ("auto", "same"):
        number(float, "--draft-temperature", *RANGES["temperature"][:2])(given)
    return given


Rule = Annotated[
    str | None,
    choice(
        "--rule",
        RULES,
        panel=SAMPLING,
        metavar="RULE",
        help="How drafts are verified, all lossless: token, block (keeps most), or coupled (a seed gives the same "
        "text with any draft and none). Default: the pair's, or block.",
    ),
]
Seed = Annotated[
    int,
    whole("-s", "--seed", low=-1, high=LARGEST_SEED, panel=SAMPLING, help="N repeats a run; -1: random."),
]
Temperature = Annotated[float | None, _real("temperature", help="0: greedy, up to 100. Default: 0.8.")]
DraftTemperature = Annotated[
    str | None,
    option(
        "--draft-temperature",
        panel=SAMPLING,
        metavar="HEAT",
        parser=_draft_temperature,
        help="Of the draft, which never changes the text's distribution: auto (0.85 of the target's), same, a number. "
        "Default: the pair's, or auto.",
    ),
]
TopK = Annotated[int | None, _count("top_k", help="Only the N most likely; 0: all. Default: 40.")]
TopP = Annotated[float | None, _real("top_p", help="Only the most likely that hold share X; 1: all. Default: 0.95.")]
MinP = Annotated[
    float | None, _real("min_p", help="Only those at least X times as likely as the best; 0: all. Default: 0.05.")
]
TypicalP = Annotated[
    float | None, _real("typical_p", help="Only the most typical that hold share X; 1: all. Default: 1.")
]
TopNSigma = Annotated[
    float | None, _real("top_n_sigma", help="Only logits within X deviations of the best; 0: all. Default: 0.")
]
XtcProbability = Annotated[
    float | None, _real("xtc_probability", help="Chance to leave out the most likely tokens. Default: 0.")
]
XtcThreshold = Annotated[
    float | None,
    _real("xtc_threshold", help="How likely XTC's are: above X, all but the last. Default: 0.1; above 0.5: off."),
]
Samplers = Annotated[
    str | None,
    option(
        "--samplers",
        panel=SAMPLING,
        metavar="NAMES",
        help=f"Which samplers act, in which order; others are off. Default: {', '.join(DEFAULT_ORDER)}.",
    ),
]
LogitBias = Annotated[
    list[str] | None,
    option(
        "--logit-bias",
        panel=SAMPLING,
        metavar="TOKEN=X",
        help="Add X to the logit of a token, given by its text or id; -inf bans it. Repeatable.",
        show_default=False,
    ),
]
Grammar = Annotated[
    Path | None, option("--grammar", panel=SAMPLING, metavar="FILE", help="The answer follows a GBNF grammar.")
]
JsonSchema = Annotated[
    str | None,
    option(
        "--json-schema",
        panel=SAMPLING,
        metavar="FILE",
        help="The answer is JSON of a schema: a file, or its text.",
        parser=some_text("--json-schema", "{} stands for any JSON"),
    ),
]

RepeatLastN = Annotated[
    int | None,
    _count(
        "repeat_last_n", low=-1, panel=REPETITION, help="Tokens that the penalties look back on; -1: all. Default: 64."
    ),
]
RepeatPenalty = Annotated[
    float | None,
    _real("repeat_penalty", panel=REPETITION, help="Divides the logits of tokens that came; 1: off. Default: 1."),
]
PresencePenalty = Annotated[
    float | None,
    _real("presence_penalty", panel=REPETITION, help="Taken off the logits of tokens that came. Default: 0."),
]
FrequencyPenalty = Annotated[
    float | None, _real("frequency_penalty", panel=REPETITION, help="Taken off for each time a token came. Default: 0.")
]
DryMultiplier = Annotated[
    float | None,
    _real("dry_multiplier", panel=REPETITION, help="Penalty for repeating what was said; 0: off. Default: 0."),
]
DryBase = Annotated[
    float | None,
    _real(
        "dry_base",
        panel=REPETITION,
        help="DRY's penalty grows X times with each token of the repetition. Default: 1.75.",
    ),
]
DryAllowedLength = Annotated[
    int | None,
    _count("dry_allowed_length", panel=REPETITION, help="Repetitions of up to N tokens go free of DRY. Default: 2."),
]
DryPenaltyLastN = Annotated[
    int | None,
    _count("dry_penalty_last_n", low=-1, panel=REPETITION, help="Tokens that DRY looks back on; -1: all. Default: 64."),
]
DrySequenceBreaker = Annotated[
    list[str] | None,
    option(
        "--dry-sequence-breaker",
        panel=REPETITION,
        metavar="TEXT",
        help='Ends a repetition; repeatable, none for none. Default: a newline, :, " and *.',
        show_default=False,
    ),
]


def to_given(**options: Any) -> dict[str, Any]:
    """What the user says about the sampling chain, as `specdec_cli.sampling_settings` reads it; only what is said.

    Raises:
        UsageError: an unknown sampler, or a bias that is none.
    """
    if options["samplers"] is not None:
        options["samplers"] = to_samplers(options["samplers"])
    if options["logit_bias"] is not None:
        options["logit_bias"] = tuple(_bias(each) for each in options["logit_bias"])
    return {name: value for name, value in options.items() if value is not None}
