"""`specdec theory`: what a draft should bring, before anything is run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from specdec_cli.commands import options
from specdec_cli.commands.option_kinds import number, option, whole
from specdec_cli.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from specdec_cli.theory_view import Setting

THEORY: Final = "Draft and target"
DEAREST: Final = 1000
DEFAULT_LENGTH: Final = 12
FARTHEST: Final = 1e9
"""How many times as dear one pass can be as another."""
HINT: Final = "numbers by commas, such as 1,1.5,1.6, or a file of them: the cost of a pass over 1, 2, 3 … tokens"


def _share(flag: str, high: float) -> Any:
    return number(float, flag, 0, high)


Measured = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="What specdec bench --json or --trace wrote: α, c and v as measured."),
]
Alpha = Annotated[
    float | None,
    option("--alpha", panel=THEORY, metavar="A", parser=_share("--alpha", 1), help="How often a guess is kept, 0..1."),
]
Step = Annotated[
    float | None,
    option("--c", panel=THEORY, metavar="C", parser=_share("--c", DEAREST), help="A drafted token in plain steps."),
]
Passes = Annotated[
    str | None,
    option("--v", panel=THEORY, metavar="V", help="Cost of passes over 1, 2, … tokens: N,N,… or FILE. Default: all 1."),
]
Longest = Annotated[int, whole("-k", "--draft-tokens", low=0, high=128, panel=THEORY, help="Show lengths up to N.")]


def theory(
    file: Measured = None,
    alpha: Alpha = None,
    c: Step = None,
    v: Passes = None,
    draft_tokens: Longest = DEFAULT_LENGTH,
    json: options.Json = False,
    debug: options.Debug = False,
) -> int:
    """Predict what speculation brings: tokens a round, what they cost, and the best draft length.

    What is given by hand counts in place of what FILE holds: what if the draft were twice as fast?

    [b]Examples[/b]

    specdec theory --alpha 0.8 --c 0.04

    specdec theory --alpha 0.75 --c 0.25 --v 1,1.5,1.6,1.75,1.9,2.1

    specdec bench --json > bench.json; specdec theory bench.json --c 0.1
    """
    from specdec_cli.theory_view import Guess, Setting, all_to_json, predict, to_json, to_table, to_tables

    if file is None:
        if alpha is None:
            raise UsageError("there is no --alpha and no FILE that holds one", hint="specdec theory --alpha 0.8")
        prediction = predict(Setting(Guess(alpha), c or 0.0, read_passes(v)), draft_tokens)
        text = to_json(prediction) if json else to_table(prediction)
    else:
        settings = _read(file, alpha, c, None if v is None else read_passes(v))
        text = all_to_json(settings, draft_tokens, file) if json else to_tables(settings, draft_tokens)
    typer.echo(text.encode(), nl=False)  # whatever this system takes text for
    return EXIT_OK


def _read(file: Path, alpha: float | None, c: float | None, v: tuple[float, ...] | None) -> "list[Setting]":
    """What `file` holds, with what is given by hand in place of it."""
    from specdec_cli.bench.reading import read_observed
    from specdec_cli.terminal import Terminal
    from specdec_cli.theory_view import to_setting

    settings = []
    for each in read_observed(file, Terminal.of_process().notice):
        if (setting := to_setting(each, alpha=alpha, step=c, passes=v)) is None:
            raise UsageError(f"{file} does not tell what passes cost", hint="give --v and --c; -k auto measures them")
        settings.append(setting)
    return settings


def read_passes(given: str | None) -> tuple[float, ...]:
    """v(1), v(2), … from text or a file; all 1 if nothing is given, which is the classic formula.

    Raises:
        UsageError: it holds something else than positive numbers, or nothing.
    """
    if given is None:
        return (1.0, 1.0)
    text = _text_of(given)
    try:
        passes = tuple(float(each) for each in text.replace(",", " ").split())
    except ValueError:
        raise UsageError(f"--v {given:.80} is not a list of numbers", hint=HINT) from None
    if not passes or not all(0 < each < float("inf") for each in passes):
        raise UsageError(f"--v {given:.80} needs one positive number at least, and no other kind", hint=HINT)
    if max(passes) > FARTHEST * passes[0] or min(passes) * FARTHEST < passes[0]:
        raise UsageError(f"--v {given:.80} says what no pass can cost: {min(passes):g} to {max(passes):g}", hint=HINT)
    return passes


def _text_of(given: str) -> str:
    """What the file `given` holds, or the text itself if there is no such file."""
    try:
        if not Path(given).is_file():
            return given
    except (OSError, ValueError):  # no name that a file could have
        return given
    try:
        return Path(given).read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"--v {given} cannot be read: {error.strerror}", hint=HINT) from None
