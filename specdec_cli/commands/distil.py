"""`specdec distil`: making a small draft for a big model, out of what the big one says."""

from pathlib import Path
from typing import Annotated, Final

import typer

from specdec_cli.commands import options
from specdec_cli.commands import sampling_options as sampling
from specdec_cli.commands.choosing import choose_pair
from specdec_cli.commands.option_groups import EngineOptions, grouped
from specdec_cli.commands.option_kinds import LARGEST_SEED, choice, option, whole
from specdec_cli.errors import EXIT_OK, UsageError
from specdec_cli.limits import MOST_SEQUENCES

DISTIL: Final = "Distil"
KINDS: Final = ("f32", "f16", "q8_0", "q6_k", "q5_k", "q5_1", "q5_0", "q4_k", "q4_1", "q4_0")

distil = typer.Typer(help="Make a small draft out of a big model's own answers.", no_args_is_help=True)

Prompts = Annotated[
    list[str] | None, typer.Argument(metavar="FILE", help="Prompts, one a line. Default: 23,000 of our own.")
]
AnswersOutput = Annotated[
    Path, option("-o", "--output", panel=DISTIL, metavar="ANSWERS", help="The file that grows; it may be there.")
]
Sequences = Annotated[
    int, whole("--sequences", low=1, high=MOST_SEQUENCES, panel=DISTIL, help="Answers in the making at once.")
]
Repeat = Annotated[int, whole("--repeat", low=1, panel=DISTIL, help="Ask all prompts N times.")]
Tokens = Annotated[
    int | None, whole("--tokens", low=1, panel=DISTIL, help="Stop when the file has N tokens of answers.")
]
AnswerTokens = Annotated[int, whole("-n", "--max-tokens", low=1, panel=DISTIL, help="At most N tokens an answer.")]
Seed = Annotated[int, whole("-s", "--seed", low=0, high=LARGEST_SEED, panel=DISTIL, help="Of all luck.")]
Answers = Annotated[list[Path], typer.Argument(metavar="ANSWERS", help="Files of `specdec distil generate`.")]
TrainingOutput = Annotated[
    Path,
    option(
        "-o", "--output", panel=DISTIL, metavar="TRAINING", help="The checkpoint; one that is there is gone on from."
    ),
]
Epochs = Annotated[int, whole("--epochs", low=1, high=1000, panel=DISTIL, help="Times that all is learned from.")]
Width = Annotated[int, whole("--width", low=64, high=4096, panel=DISTIL, help="Of the draft, a multiple of 64.")]
Layers = Annotated[int, whole("--layers", low=1, high=64, panel=DISTIL, help="Of the draft.")]
Device = Annotated[
    str, choice("--train-on", ("cpu", "cuda"), panel=DISTIL, metavar="DEVICE", help="cpu or cuda, for PyTorch.")
]
Whose = Annotated[
    Path, option("-m", "--target", panel=options.MODELS, metavar="GGUF", help="The big model that the draft is for.")
]
Training = Annotated[Path, typer.Argument(metavar="TRAINING", help="A checkpoint of `specdec distil train`.")]
ModelOutput = Annotated[Path, option("-o", "--output", panel=DISTIL, metavar="GGUF", help="The draft to write.")]
Kind = Annotated[str, choice("--type", KINDS, panel=DISTIL, metavar="TYPE", help="What its matrices are quantised to.")]
EmbeddingKind = Annotated[
    str, choice("--embedding-type", KINDS, panel=DISTIL, metavar="TYPE", help="The same for its embeddings.")
]
Licence = Annotated[
    str | None, option("--license", panel=DISTIL, metavar="NAME", help="What the file says its licence is.")
]
EachKind = Annotated[int, whole("--prompts", low=1, panel=DISTIL, help="Held-out prompts of each kind.")]


@distil.command(no_args_is_help=True)
@grouped
def generate(
    files: Prompts = None,
    *,
    output: AnswersOutput,
    sequences: Sequences = 64,
    repeat: Repeat = 1,
    tokens: Tokens = None,
    max_tokens: AnswerTokens = 256,
    seed: Seed = 0,
    temperature: sampling.Temperature = None,
    pair: options.PairName = None,
    target: options.Target = None,
    config: options.Config = None,
    engine: EngineOptions,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> int:
    """Ask the target many prompts at once and keep its answers. Takes hours; Ctrl-C loses nothing that is whole.

    [b]Examples[/b]

    specdec distil generate -m big.gguf -o big.answers

    specdec distil generate -m big.gguf -o mine.answers questions.txt --repeat 10
    """
    from specdec_cli.distil.asking import Plan, ask
    from specdec_cli.terminal import Terminal

    plan = Plan(
        pair=choose_pair(pair, target, "none", config),
        settings=engine.to_settings(),
        output=output,
        files=tuple(files or ()),
        sequences=sequences,
        repeat=repeat,
        tokens=tokens,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
    )
    return ask(plan, Terminal.of_process(quiet=quiet), verbose=verbose)


@distil.command(no_args_is_help=True)
def train(
    answers: Answers,
    target: Whose,
    output: TrainingOutput,
    epochs: Epochs = 6,
    width: Width = 256,
    layers: Layers = 4,
    seed: Seed = 0,
    train_on: Device = "cpu",
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> int:
    """Train a draft on answers. Needs PyTorch: pip install "specdec-cli\\[distil]".

    [b]Examples[/b]

    specdec distil train -m big.gguf big.answers -o big.training
    """
    if width % 64:
        raise UsageError(f"--width {width} is not a multiple of 64")
    _check_torch()
    from specdec_cli.distil.teaching import Plan, teach
    from specdec_cli.terminal import Terminal

    plan = Plan(target, tuple(answers), output, epochs, width, layers, seed, train_on)
    return teach(plan, Terminal.of_process(quiet=quiet))


@distil.command(no_args_is_help=True)
def export(
    training: Training,
    target: Whose,
    output: ModelOutput,
    type: Kind = "q8_0",
    embedding_type: EmbeddingKind = "q4_0",
    license: Licence = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> int:
    """Write the draft of a training as a GGUF file with the target's tokenizer.

    [b]Examples[/b]

    specdec distil export big.training -m big.gguf -o small.gguf
    """
    _check_torch()
    from specdec_cli.distil.exporting import export_draft
    from specdec_cli.terminal import Terminal

    terminal = Terminal.of_process(quiet=quiet)
    terminal.notice(export_draft(training, target, output, kind=type, embedding_kind=embedding_type, licence=license))
    return EXIT_OK


@distil.command(no_args_is_help=True)
@grouped
def evaluate(
    pair: options.PairName = None,
    *,
    target: options.Target = None,
    draft: options.Draft = None,
    config: options.Config = None,
    prompts: EachKind = 4,
    max_tokens: AnswerTokens = 160,
    seed: Seed = 0,
    engine: EngineOptions,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> int:
    """Say how good a draft is, on prompts about what no answer it learned from was about.

    At temperature 0.8 Σmin is α; at 0 it is how often both models find the same token likeliest.

    [b]Examples[/b]

    specdec distil evaluate -m big.gguf -d small.gguf
    """
    from specdec_cli.bench.benching import Output, bench
    from specdec_cli.distil.evaluating import to_plan
    from specdec_cli.terminal import Terminal

    chosen = choose_pair(pair, target, draft, config)
    plan = to_plan(each_kind=prompts, max_tokens=max_tokens, seed=seed)
    output = Output("json" if json else "table", None, None, verbose)
    return bench(chosen, engine.to_settings(), plan, Terminal.of_process(quiet=quiet), output)


def _check_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None or find_spec("gguf") is None:
        raise UsageError("PyTorch or gguf is not installed", hint='pip install "specdec-cli[distil]"')
