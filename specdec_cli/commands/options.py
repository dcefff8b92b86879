"""The options that commands share, each once: its flags, its range, its help and the panel it stands in."""

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from specdec_cli.commands.completing import drafters, pair_names
from specdec_cli.commands.option_kinds import choice, number, number_or_auto, option, some_text, whole
from specdec_cli.errors import UsageError
from specdec_cli.limits import LARGEST_BATCH, LARGEST_INT, LONGEST_DRAFT, MOST_THREADS
from specdec_cli.settings import SPLIT_MODES, are_shares

PROMPT: Final = "Prompt and length"
MODELS: Final = "Models"
SPEED: Final = "Speed and memory"
DEVICES: Final = "Devices"
OUTPUT: Final = "Output"

CACHE_TYPES: Final = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"specdec {version('specdec-cli')}")
        raise typer.Exit


PromptArgument = Annotated[
    str | None,
    typer.Argument(metavar="PROMPT", help="What to answer. A file (-f) or piped text is put before it."),
]
FirstArgument = Annotated[
    str | None,
    typer.Argument(metavar="PROMPT", help="The first message. A file (-f) is put before it."),
]
Prompt = Annotated[str | None, option("-p", "--prompt", panel=PROMPT, metavar="TEXT", help="The same as PROMPT.")]
File = Annotated[
    str | None,
    option("-f", "--file", panel=PROMPT, metavar="FILE", help="Read FILE; - waits for standard input."),
]
System = Annotated[
    str | None, option("--system", panel=PROMPT, metavar="TEXT", help="Who the model should be; a system message.")
]
Raw = Annotated[bool, option("--raw", panel=PROMPT, help="Continue the prompt as plain text, no chat template.")]
SessionFile = Annotated[
    Path | None,
    option("--session", panel=PROMPT, metavar="FILE", help="Go on with the chat in FILE, and keep it there."),
]
Suffix = Annotated[
    str | None,
    option(
        "--suffix",
        panel=PROMPT,
        metavar="TEXT",
        help="Fill in what is missing between PROMPT and TEXT, or the file of that name. For code models.",
    ),
]
SaveCache = Annotated[
    bool, option("--save-cache", panel=PROMPT, help="Keep the caches beside that FILE, so that it goes on at once.")
]
MaxTokens = Annotated[
    int, whole("-n", "--max-tokens", low=-1, panel=PROMPT, help="At most N tokens; -1: as many as fit.")
]
Stop = Annotated[
    list[str] | None,
    option(
        "--stop",
        panel=PROMPT,
        metavar="TEXT",
        help="End just before TEXT; repeatable.",
        show_default=False,
        parser=some_text("--stop", "an empty one would stop before the first word"),
    ),
]

PairArgument = Annotated[
    str | None,
    typer.Argument(metavar="PAIR", help="A pair of models.toml; else its default.", autocompletion=pair_names),
]
PairName = Annotated[
    str | None,
    option(
        "--pair",
        panel=MODELS,
        metavar="NAME",
        help="A pair of models.toml; else its default.",
        autocompletion=pair_names,
    ),
]
Target = Annotated[
    Path | None, option("-m", "--target", panel=MODELS, metavar="FILE", help="The big model, a GGUF file.")
]
Draft = Annotated[
    str | None,
    option(
        "-d",
        "--draft",
        panel=MODELS,
        metavar="DRAFT",
        help="Who guesses: a small GGUF file, lookup (repeats the context), text:FILE (a file like the answer), "
        "table:FILE (specdec table build), "
        "several by commas (the first that is sure), or none.",
        autocompletion=drafters,
    ),
]
DraftTokens = Annotated[
    Any,
    option(
        "-k",
        "--draft-tokens",
        panel=MODELS,
        metavar="N",
        help="Drafted a round, or auto: as many as pay here, if any. Default: the pair's, or auto.",
        parser=number_or_auto("--draft-tokens", 0, LONGEST_DRAFT),
    ),
]
Memory = Annotated[
    Path | None,
    option(
        "--memory", panel=MODELS, metavar="FILE", help="Keep answers (no prompts) in FILE for lookup in later runs."
    ),
]
MemoryPrompt = Annotated[
    bool, option("--memory-prompt", panel=MODELS, help="Keep the prompt in --memory too, as it was read.")
]
Recalibrate = Annotated[
    bool, option("--recalibrate", panel=SPEED, help="Measure anew how fast this machine is, for --draft-tokens auto.")
]
Config = Annotated[
    Path | None, option("--config", panel=MODELS, metavar="FILE", help="A models.toml in place of your own.")
]

Lora = Annotated[
    list[str] | None,
    option(
        "--lora",
        panel=MODELS,
        metavar="FILE[=X]",
        help="A LoRA adapter for the target, scaled by X (1); repeatable.",
        show_default=False,
    ),
]
DraftLora = Annotated[
    list[str] | None,
    option("--draft-lora", panel=MODELS, metavar="FILE[=X]", help="Likewise for the draft.", show_default=False),
]

CtxSize = Annotated[
    int | None,
    whole(
        "-c",
        "--ctx-size",
        low=0,
        high=2**24,
        panel=SPEED,
        help="Room for prompt and answer, in tokens; 0: all that the model knows. Default: 4096, or more if needed.",
    ),
]
Threads = Annotated[
    int | None, whole("--threads", low=1, high=MOST_THREADS, panel=SPEED, help="Of the target. Default: all CPUs.")
]
DraftThreads = Annotated[
    int | None,
    whole(
        "--draft-threads",
        low=1,
        high=MOST_THREADS,
        panel=SPEED,
        help="Of the draft. Default: the same, or all CPUs if only the draft is on them.",
    ),
]
BatchSize = Annotated[
    int | None,
    whole("--batch-size", low=1, high=LARGEST_BATCH, panel=SPEED, help="Prompt tokens in a pass. Default: 2048."),
]
Rpc = Annotated[
    str | None,
    option(
        "--rpc",
        panel=DEVICES,
        metavar="WORKERS",
        help="HOST:PORT of workers (specdec worker), several by commas, whose devices join those here; or none.",
    ),
]
Device = Annotated[
    str | None,
    option(
        "--device",
        panel=DEVICES,
        metavar="NAMES",
        help="Of the target: devices that specdec doctor lists, or workers, by commas; none is the CPU. "
        "Default: all workers and GPUs.",
    ),
]
DraftDevice = Annotated[
    str | None,
    option("--draft-device", panel=DEVICES, metavar="NAMES", help="Of the draft. Default: one GPU here, else the CPU."),
]
GpuLayers = Annotated[
    Any,
    option(
        "--gpu-layers",
        panel=DEVICES,
        metavar="N",
        help="Of the target, off the CPU; -1: all; auto: as many as fit. Default: auto.",
        parser=number_or_auto("--gpu-layers", -1, LARGEST_INT),
    ),
]
DraftGpuLayers = Annotated[
    Any,
    option(
        "--draft-gpu-layers",
        panel=DEVICES,
        metavar="N",
        help="Of the draft, likewise.",
        parser=number_or_auto("--draft-gpu-layers", -1, LARGEST_INT),
    ),
]
TensorSplit = Annotated[
    str | None,
    option(
        "--tensor-split",
        panel=DEVICES,
        metavar="SHARES",
        help="How much of the target each device takes, such as 3,1. Default: by free memory.",
    ),
]
SplitMode = Annotated[
    str | None,
    choice(
        "--split-mode",
        SPLIT_MODES,
        panel=DEVICES,
        metavar="MODE",
        help="layer: each on one device; none: all on one; row: in rows on GPUs of one kind. Default: layer.",
    ),
]
MainGpu = Annotated[
    int | None,
    whole("--main-gpu", low=0, panel=DEVICES, help="With --split-mode none: which of the devices, from 0."),
]
FlashAttn = Annotated[
    str, choice("--flash-attn", ("auto", "on", "off"), panel=SPEED, metavar="WHEN", help="auto, on or off.")
]
CacheTypeK = Annotated[
    str,
    choice(
        "--cache-type-k",
        CACHE_TYPES,
        panel=SPEED,
        metavar="TYPE",
        help=f"Of cached keys: {', '.join(CACHE_TYPES)}.",
    ),
]
CacheTypeV = Annotated[
    str, choice("--cache-type-v", CACHE_TYPES, panel=SPEED, metavar="TYPE", help="Of cached values: as above.")
]

ColorTokens = Annotated[
    bool, option("--color-tokens", panel=OUTPUT, help="Accepted tokens green, corrections red, bonus cyan.")
]
Think = Annotated[
    bool, option("--think/--no-think", panel=OUTPUT, help="Show what the model thinks before it speaks, dimmed.")
]
Logprobs = Annotated[
    int | None,
    whole(
        "--logprobs",
        low=0,
        high=1000,
        panel=OUTPUT,
        help="In --json: log-probabilities of each token and of the N best.",
    ),
]
Trace = Annotated[
    Path | None,
    option(
        "--trace",
        panel=OUTPUT,
        metavar="FILE",
        help="Write each round to FILE, for specdec trace. Replaces a trace, and no other file.",
    ),
]
Json = Annotated[bool, option("--json", panel=OUTPUT, help="One JSON object in place of the text.")]
Stats = Annotated[
    bool | None,
    option("--stats/--no-stats", panel=OUTPUT, help="A summary on stderr. Default: if that is a terminal."),
]
Quiet = Annotated[bool, option("-q", "--quiet", panel=OUTPUT, help="Nothing on stderr but errors.")]
Verbose = Annotated[bool, option("--verbose", panel=OUTPUT, help="llama.cpp's own log on stderr.")]
Debug = Annotated[bool, option("--debug", panel=OUTPUT, help="A traceback with an error.")]
Version = Annotated[
    bool,
    typer.Option("--version", metavar="", callback=_show_version, is_eager=True, help="Show the version and exit."),
]


def to_adapters(option_name: str, given: list[str] | None) -> tuple[tuple[Path, float], ...]:
    """Files with their scales, from FILE or FILE=X.

    Raises:
        UsageError: a scale is out of range.
    """
    adapters = []
    for each in given or ():
        path, equals, scale = each.rpartition("=")
        if equals and not Path(each).exists():
            adapters.append((Path(path), number(float, f"{option_name} {path} with scale", -100, 100)(scale)))
        else:
            adapters.append((Path(each), 1.0))
    return tuple(adapters)


def to_names(option_name: str, given: str | None) -> tuple[str, ...] | None:
    """Names of devices by commas.

    Raises:
        UsageError: one is empty, or there twice.
    """
    if given is None:
        return None
    names = tuple(part.strip() for part in given.split(","))
    for name in names:
        if not name or names.count(name) > 1:
            what = f"names {name} twice" if name else f'"{given}" has an empty name'
            raise UsageError(f"{option_name} {what}", hint="names by commas; specdec doctor lists the devices")
    return names


def to_shares(given: str | None) -> tuple[float, ...] | None:
    """Shares by commas.

    Raises:
        UsageError: one is no number from 0, or all are 0.
    """
    if given is None:
        return None
    try:
        shares = tuple(float(part) for part in given.split(","))
    except ValueError:
        shares = ()
    if not are_shares(shares):
        raise UsageError(f'--tensor-split "{given}" is no list of shares', hint="numbers from 0 by commas, such as 3,1")
    return shares
