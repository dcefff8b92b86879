"""`specdec generate`: one prompt, one answer."""

from specdec_cli.commands import options
from specdec_cli.commands.choosing import choose_pair_or_pull
from specdec_cli.commands.option_groups import AnswerOptions, EngineOptions, check_memory, check_together, grouped
from specdec_cli.errors import UsageError


@grouped
def generate(
    prompt: options.PromptArgument = None,
    prompt_option: options.Prompt = None,
    file: options.File = None,
    system: options.System = None,
    raw: options.Raw = False,
    suffix: options.Suffix = None,
    pair: options.PairName = None,
    target: options.Target = None,
    draft: options.Draft = None,
    memory: options.Memory = None,
    memory_prompt: options.MemoryPrompt = False,
    config: options.Config = None,
    *,
    wished: AnswerOptions,
    engine: EngineOptions,
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
    """Answer a prompt with the target, sped up by the draft.

    [b]Examples[/b]

    specdec generate [green]"Why is the sky blue?"[/]

    cat error.log | specdec generate [green]"What went wrong?"[/] > answer.txt

    git diff | specdec generate --temperature 0 [green]"Write a commit message."[/]

    specdec generate -m big.gguf -d small.gguf -f question.txt --json | jq .stats
    """
    from specdec_cli.answer import answer
    from specdec_cli.prompt import read_prompt, read_suffix
    from specdec_cli.question import Question
    from specdec_cli.telling import OutputOptions
    from specdec_cli.terminal import Terminal

    check_together(prompt, prompt_option, json=json, logprobs=logprobs)
    raw = raw or suffix is not None
    if raw and system is not None:
        option = "--raw" if suffix is None else "--suffix"
        raise UsageError(f"{option} has no place for a --system message", hint=f"drop --system or {option}")
    terminal = Terminal.of_process(quiet=quiet)
    wishes, settings = wished.to_wishes(logprobs), engine.to_settings()
    text = read_prompt(prompt if prompt is not None else prompt_option, file, terminal, keeps_end=suffix is not None)
    after = None if suffix is None else read_suffix(suffix, terminal)
    if not raw and not text.strip():
        raise UsageError("the prompt is empty", hint="--raw continues even from nothing, where the model can")
    chosen = choose_pair_or_pull(pair, target, draft, config, terminal)
    check_memory(memory, chosen, with_prompt=memory_prompt)
    question = Question(chosen, settings, wishes, text, system, raw, memory, memory_prompt, after)
    return answer(question, terminal, OutputOptions(json, stats, color_tokens, verbose, trace))
