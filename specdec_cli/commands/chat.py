"""`specdec chat`: a conversation, line by line."""

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, get_args, get_origin, get_type_hints

import typer

from specdec_cli.commands import options
from specdec_cli.commands.choosing import choose_pair_or_pull
from specdec_cli.commands.option_groups import AnswerOptions, EngineOptions, check_memory, check_together, grouped
from specdec_cli.errors import UsageError

if TYPE_CHECKING:
    from specdec_cli.chat.choices import Choice


@grouped
def chat(
    context: typer.Context,
    prompt: options.FirstArgument = None,
    prompt_option: options.Prompt = None,
    file: options.File = None,
    system: options.System = None,
    session: options.SessionFile = None,
    save_cache: options.SaveCache = False,
    pair: options.PairName = None,
    target: options.Target = None,
    draft: options.Draft = None,
    memory: options.Memory = None,
    memory_prompt: options.MemoryPrompt = False,
    config: options.Config = None,
    *,
    wished: AnswerOptions,
    engine: EngineOptions,
    think: options.Think = True,
    color_tokens: options.ColorTokens = False,
    json: options.Json = False,
    logprobs: options.Logprobs = None,
    trace: options.Trace = None,
    stats: options.Stats = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
    version: options.Version = False,
) -> int:
    """Talk with the target, sped up by the draft.

    At a terminal /help lists what else a line can do. From a pipe each line is a message, and stdout gets the answers.

    [b]Examples[/b]

    specdec chat

    specdec chat -m big.gguf -d small.gguf --session notes.json

    specdec chat [green]"Let us play chess. You begin."[/]

    echo [green]"Name three rivers."[/] | specdec chat > answer.txt
    """
    from specdec_cli.chat.opening import Opening
    from specdec_cli.chat.repl import chat
    from specdec_cli.chat.view import ViewOptions
    from specdec_cli.prompt import read_prompt
    from specdec_cli.terminal import Terminal

    check_together(prompt, prompt_option, json=json, logprobs=logprobs)
    if save_cache and session is None:
        raise UsageError("--save-cache needs --session, beside whose file the caches go")
    terminal = Terminal.of_process(quiet=quiet)
    asked = prompt if prompt is not None else prompt_option
    first = asked if file is None else read_prompt(asked, file, terminal)
    chosen = choose_pair_or_pull(pair, target, draft, config, terminal)
    check_memory(memory, chosen, with_prompt=memory_prompt)
    summary = stats if stats is not None else terminal.shows_messages and not quiet
    opening = Opening(
        pair=chosen,
        settings=engine.to_settings(),
        choices=to_choices(),
        wished=wished,
        given=_given(context),
        view=ViewOptions(text=not json, thoughts=think, color_tokens=color_tokens, stats=summary),
        system=system,
        first=first,
        session_file=session,
        save_cache=save_cache,
        memory_file=memory,
        remembers_questions=memory_prompt,
        logprobs=logprobs,
        verbose=verbose,
        trace=trace,
    )
    return chat(opening, terminal)


def to_choices() -> "list[Choice]":
    """The options of an answer, as /set reads them."""
    from specdec_cli.chat.choices import Choice

    hints = get_type_hints(AnswerOptions, include_extras=True)
    choices = []
    for each in fields(AnswerOptions):
        kind, option = get_args(hints[each.name])
        many = any(get_origin(part) is list for part in get_args(kind))
        read = option.parser or (Path if Path in get_args(kind) else str)
        words = tuple(option.autocompletion()) if option.autocompletion else ()
        choices.append(Choice(each.name, read, each.default, words, many))
    return choices


def _given(context: typer.Context) -> frozenset[str]:
    """The options of an answer that are on the command line."""
    sources = {each.name: context.get_parameter_source(each.name) for each in fields(AnswerOptions)}
    return frozenset(name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE")
