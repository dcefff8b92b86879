"""The options that commands share, each once: its flags, its range, its help and the panel it stands in."""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from specdec_cli.errors import UsageError
from specdec_cli.limits import LONGEST_DRAFT

PROMPT: Final = "Prompt and length"
MODELS: Final = "Models"
SAMPLING: Final = "Sampling (llama.cpp's defaults)"
SPEED: Final = "Speed and memory"
OUTPUT: Final = "Output"

LARGEST_INT: Final = 2**31 - 1
LARGEST_SEED: Final = 2**53 - 1
"""Every JSON reader keeps whole numbers up to this one exact."""
CACHE_TYPES: Final = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")

Number = TypeVar("Number", int, float)


def _option(*flags: str, panel: str, help: str, metavar: str = "", **more: Any) -> Any:
    """`metavar` stays empty for flags, which typer would describe as `<bool>`."""
    return typer.Option(*flags, rich_help_panel=panel, help=help, metavar=metavar, **more)


def _number(kind: type[Number], option: str, low: Number, high: Number) -> Callable[[Any], Number]:
    """A parser of numbers in low..high: typer's own complaint would not repeat what was given."""

    def parse(given: Any) -> Number:
        try:
            value = kind(given)
        except ValueError:
            raise UsageError(f"{option} {given} is not a {'whole ' if kind is int else ''}number") from None
        if not low <= value <= high:
            raise UsageError(f"{option} {given} is not in {low}..{high}")
        return value

    return parse


def _whole(*flags: str, low: int, high: int = LARGEST_INT, panel: str, help: str) -> Any:
    """An option for a whole number."""
    return _option(*flags, panel=panel, help=help, metavar="N", parser=_number(int, flags[-1], low, high))


def _real(*flags: str, high: int, help: str) -> Any:
    """A sampling option for a number from 0 up."""
    return _option(*flags, panel=SAMPLING, help=help, metavar="X", parser=_number(float, flags[-1], 0, high))


def _choice(flag: str, choices: Sequence[str], *, metavar: str, help: str) -> Any:
    """An option for one of a few words."""

    def parse(given: str) -> str:
        if given not in choices:
            raise UsageError(f"{flag} {given} is not one of {', '.join(choices)}")
        return given

    return _option(flag, panel=SPEED, help=help, metavar=metavar, parser=parse, autocompletion=lambda: list(choices))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"specdec {version('specdec-cli')}")
        raise typer.Exit


PromptArgument = Annotated[
    str | None,
    typer.Argument(metavar="PROMPT", help="What to answer. A file (-f) or piped text is put before it."),
]
Prompt = Annotated[str | None, _option("-p", "--prompt", panel=PROMPT, metavar="TEXT", help="The same as PROMPT.")]
File = Annotated[
    str | None,
    _option("-f", "--file", panel=PROMPT, metavar="FILE", help="Read FILE; - waits for standard input."),
]
System = Annotated[
    str | None, _option("--system", panel=PROMPT, metavar="TEXT", help="Who the model should be; a system message.")
]
Raw = Annotated[bool, _option("--raw", panel=PROMPT, help="Continue the prompt as plain text, no chat template.")]
MaxTokens = Annotated[
    int, _whole("-n", "--max-tokens", low=-1, panel=PROMPT, help="At most N tokens; -1: as many as fit.")
]
Stop = Annotated[
    list[str] | None,
    _option("--stop", panel=PROMPT, metavar="TEXT", help="End just before TEXT; repeatable.", show_default=False),
]

PairName = Annotated[
    str | None, _option("--pair", panel=MODELS, metavar="NAME", help="A pair of models.toml; else its default.")
]
Target = Annotated[
    Path | None, _option("-m", "--target", panel=MODELS, metavar="FILE", help="The big model, a GGUF file.")
]
Draft = Annotated[
    str | None,
    _option("-d", "--draft", panel=MODELS, metavar="FILE", help="The small one; or lookup, or none."),
]
DraftTokens = Annotated[
    int | None,
    _whole(
        "-k", "--draft-tokens", low=0, high=LONGEST_DRAFT, panel=MODELS, help="Drafted a round; else the pair's or 4."
    ),
]
Config = Annotated[
    Path | None, _option("--config", panel=MODELS, metavar="FILE", help="A models.toml in place of your own.")
]

Temperature = Annotated[float, _real("--temperature", high=100, help="0: greedy, up to 100.")]
TopK = Annotated[int, _whole("--top-k", low=0, panel=SAMPLING, help="Only the N most likely; 0: all.")]
TopP = Annotated[float, _real("--top-p", high=1, help="Only the most likely that hold share X; 1: all.")]
MinP = Annotated[float, _real("--min-p", high=1, help="Only those X times as likely as the best; 0: all.")]
Seed = Annotated[
    int,
    _whole("-s", "--seed", low=-1, high=LARGEST_SEED, panel=SAMPLING, help="The same N, the same text; -1: random."),
]

CtxSize = Annotated[
    int | None,
    _whole(
        "-c",
        "--ctx-size",
        low=0,
        high=2**24,
        panel=SPEED,
        help="Room for prompt and answer, in tokens; 0: all that the model knows. Default: 4096, or more if needed.",
    ),
]
Threads = Annotated[
    int | None, _whole("--threads", low=1, high=512, panel=SPEED, help="Of the target. Default: all CPUs.")
]
DraftThreads = Annotated[
    int | None, _whole("--draft-threads", low=1, high=512, panel=SPEED, help="Of the draft. Default: the same.")
]
BatchSize = Annotated[int, _whole("--batch-size", low=1, high=2**16, panel=SPEED, help="Prompt tokens in a pass.")]
GpuLayers = Annotated[
    int | None, _whole("--gpu-layers", low=-1, panel=SPEED, help="Of the target. Default: all, with a GPU.")
]
DraftGpuLayers = Annotated[
    int | None, _whole("--draft-gpu-layers", low=-1, panel=SPEED, help="Of the draft. Default: all, with a GPU.")
]
FlashAttn = Annotated[str, _choice("--flash-attn", ("auto", "on", "off"), metavar="WHEN", help="auto, on or off.")]
CacheTypeK = Annotated[
    str,
    _choice("--cache-type-k", CACHE_TYPES, metavar="TYPE", help=f"Of cached keys: {', '.join(CACHE_TYPES)}."),
]
CacheTypeV = Annotated[str, _choice("--cache-type-v", CACHE_TYPES, metavar="TYPE", help="Of cached values: as above.")]

ColorTokens = Annotated[
    bool, _option("--color-tokens", panel=OUTPUT, help="Accepted tokens green, corrections red, bonus cyan.")
]
Json = Annotated[bool, _option("--json", panel=OUTPUT, help="One JSON object in place of the text.")]
Stats = Annotated[
    bool | None,
    _option("--stats/--no-stats", panel=OUTPUT, help="A summary on stderr. Default: if that is a terminal."),
]
Quiet = Annotated[bool, _option("-q", "--quiet", panel=OUTPUT, help="Nothing on stderr but errors.")]
Verbose = Annotated[bool, _option("--verbose", panel=OUTPUT, help="llama.cpp's own log on stderr.")]
Debug = Annotated[bool, _option("--debug", panel=OUTPUT, help="A traceback with an error.")]
Version = Annotated[
    bool,
    typer.Option("--version", metavar="", callback=_show_version, is_eager=True, help="Show the version and exit."),
]
