"""The options that commands share, each once: its flags, its range, its help and the panel it stands in."""

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

LENGTH: Final = "Prompt and length"
MODELS: Final = "Models"
SAMPLING: Final = "Sampling (llama.cpp's defaults)"
SPEED: Final = "Speed and memory"
OUTPUT: Final = "Output"
LARGEST_SEED: Final = 2**53 - 1
"""Every JSON reader keeps whole numbers up to this one exact."""

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]
FlashAttention = Literal["auto", "on", "off"]

PromptArgument = Annotated[
    str | None,
    typer.Argument(metavar="PROMPT", help="What to answer. A file (-f) or piped text goes before it."),
]
Prompt = Annotated[str | None, typer.Option("-p", "--prompt", help="The same as PROMPT.", rich_help_panel=LENGTH)]
File = Annotated[
    str | None, typer.Option("-f", "--file", help="Read a file; [b]-[/] is stdin.", rich_help_panel=LENGTH)
]
System = Annotated[str | None, typer.Option("--system", help="A system message.", rich_help_panel=LENGTH)]
Raw = Annotated[
    bool, typer.Option("--raw", help="Continue the text as it is, without chat template.", rich_help_panel=LENGTH)
]
MaxTokens = Annotated[
    int,
    typer.Option("-n", "--max-tokens", min=-1, help="At most so many tokens; -1: no limit.", rich_help_panel=LENGTH),
]
Stop = Annotated[
    list[str] | None,
    typer.Option("--stop", help="End just before this text; repeatable.", rich_help_panel=LENGTH, show_default=False),
]

PairName = Annotated[
    str | None, typer.Option("--pair", help="A pair of models.toml, else its default.", rich_help_panel=MODELS)
]
Target = Annotated[
    Path | None, typer.Option("-m", "--target", help="The big model, a GGUF file.", rich_help_panel=MODELS)
]
Draft = Annotated[
    str | None, typer.Option("-d", "--draft", help="A small GGUF file, lookup, or none.", rich_help_panel=MODELS)
]
DraftTokens = Annotated[
    int | None,
    typer.Option("-k", "--draft-tokens", min=0, max=128, help="Drafted a round; 0: none.", rich_help_panel=MODELS),
]
Config = Annotated[
    Path | None, typer.Option("--config", help="A models.toml in place of your own.", rich_help_panel=MODELS)
]

Temperature = Annotated[float, typer.Option("--temperature", help="0 (greedy) to 100.", rich_help_panel=SAMPLING)]
TopK = Annotated[int, typer.Option("--top-k", help="Keep the k most likely; 0: all.", rich_help_panel=SAMPLING)]
TopP = Annotated[
    float, typer.Option("--top-p", help="Keep the most likely that hold this share; 1: all.", rich_help_panel=SAMPLING)
]
MinP = Annotated[
    float, typer.Option("--min-p", help="Keep those so likely relative to the best; 0: all.", rich_help_panel=SAMPLING)
]
Seed = Annotated[
    int,
    typer.Option("-s", "--seed", min=-1, max=LARGEST_SEED, help="Repeats a run; -1: random.", rich_help_panel=SAMPLING),
]

CtxSize = Annotated[
    int | None,
    typer.Option(
        "-c",
        "--ctx-size",
        min=0,
        max=2**24,
        help="Tokens of prompt and answer; 0: all the model was trained for. Default: what is needed, from 4096 up.",
        rich_help_panel=SPEED,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, max=512, help="For the target. Default: all usable CPUs.", rich_help_panel=SPEED),
]
DraftThreads = Annotated[
    int | None,
    typer.Option("--draft-threads", min=1, max=512, help="For the draft. Default: as above.", rich_help_panel=SPEED),
]
BatchSize = Annotated[
    int, typer.Option("--batch-size", min=1, max=2**16, help="Prompt tokens a pass.", rich_help_panel=SPEED)
]
GpuLayers = Annotated[
    int | None,
    typer.Option("--gpu-layers", min=-1, help="Of the target. Default: all, with a GPU.", rich_help_panel=SPEED),
]
DraftGpuLayers = Annotated[
    int | None,
    typer.Option("--draft-gpu-layers", min=-1, help="Of the draft. Default: all, with a GPU.", rich_help_panel=SPEED),
]
FlashAttn = Annotated[FlashAttention, typer.Option("--flash-attn", help="Flash attention.", rich_help_panel=SPEED)]
CacheTypeK = Annotated[CacheType, typer.Option("--cache-type-k", help="Cached keys.", rich_help_panel=SPEED)]
CacheTypeV = Annotated[CacheType, typer.Option("--cache-type-v", help="Cached values.", rich_help_panel=SPEED)]

ColorTokens = Annotated[
    bool,
    typer.Option("--color-tokens", help="Accepted green, corrections red, bonus cyan.", rich_help_panel=OUTPUT),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.", rich_help_panel=OUTPUT)]
Stats = Annotated[
    bool | None,
    typer.Option(
        "--stats/--no-stats", help="A summary on stderr. Default: if it is a terminal.", rich_help_panel=OUTPUT
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Nothing on stderr but errors.", rich_help_panel=OUTPUT)]
Verbose = Annotated[bool, typer.Option("--verbose", help="llama.cpp's own log on stderr.", rich_help_panel=OUTPUT)]
Debug = Annotated[bool, typer.Option("--debug", help="A traceback with an error.", rich_help_panel=OUTPUT)]
