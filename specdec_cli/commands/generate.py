"""`specdec generate`: one prompt, one answer."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_cli.commands import options
from specdec_cli.commands import sampling_options as sampling
from specdec_cli.errors import UsageError
from specdec_cli.limits import DEFAULT_RULE

if TYPE_CHECKING:
    from specdec_cli.catalog import Pair


def generate(
    prompt: options.PromptArgument = None,
    prompt_option: options.Prompt = None,
    file: options.File = None,
    system: options.System = None,
    raw: options.Raw = False,
    max_tokens: options.MaxTokens = -1,
    stop: options.Stop = None,
    pair: options.PairName = None,
    target: options.Target = None,
    draft: options.Draft = None,
    draft_tokens: options.DraftTokens = None,
    memory: options.Memory = None,
    lora: options.Lora = None,
    draft_lora: options.DraftLora = None,
    config: options.Config = None,
    rule: sampling.Rule = DEFAULT_RULE,
    seed: sampling.Seed = -1,
    temperature: sampling.Temperature = None,
    draft_temperature: sampling.DraftTemperature = "auto",
    top_k: sampling.TopK = None,
    top_p: sampling.TopP = None,
    min_p: sampling.MinP = None,
    typical_p: sampling.TypicalP = None,
    top_n_sigma: sampling.TopNSigma = None,
    xtc_probability: sampling.XtcProbability = None,
    xtc_threshold: sampling.XtcThreshold = None,
    samplers: sampling.Samplers = None,
    logit_bias: sampling.LogitBias = None,
    grammar: sampling.Grammar = None,
    json_schema: sampling.JsonSchema = None,
    repeat_last_n: sampling.RepeatLastN = None,
    repeat_penalty: sampling.RepeatPenalty = None,
    presence_penalty: sampling.PresencePenalty = None,
    frequency_penalty: sampling.FrequencyPenalty = None,
    dry_multiplier: sampling.DryMultiplier = None,
    dry_base: sampling.DryBase = None,
    dry_allowed_length: sampling.DryAllowedLength = None,
    dry_penalty_last_n: sampling.DryPenaltyLastN = None,
    dry_sequence_breaker: sampling.DrySequenceBreaker = None,
    ctx_size: options.CtxSize = None,
    threads: options.Threads = None,
    draft_threads: options.DraftThreads = None,
    batch_size: options.BatchSize = 2048,
    recalibrate: options.Recalibrate = False,
    gpu_layers: options.GpuLayers = None,
    draft_gpu_layers: options.DraftGpuLayers = None,
    flash_attn: options.FlashAttn = "auto",
    cache_type_k: options.CacheTypeK = "f16",
    cache_type_v: options.CacheTypeV = "f16",
    color_tokens: options.ColorTokens = False,
    json: options.Json = False,
    logprobs: options.Logprobs = None,
    stats: options.Stats = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
    version: options.Version = False,
) -> int:
    """Answer a prompt: the target's words, at the draft's pace.

    [b]Examples[/b]

    specdec generate [green]"Why is the sky blue?"[/]

    cat error.log | specdec generate [green]"What went wrong?"[/] > answer.txt

    git diff | specdec generate --temperature 0 [green]"Write a commit message."[/]

    specdec generate -m big.gguf -d small.gguf -f question.txt --json | jq .stats
    """
    from specdec_cli.answer import OutputOptions, answer
    from specdec_cli.prompt import read_prompt
    from specdec_cli.question import Question, Wishes
    from specdec_cli.settings import ModelSettings
    from specdec_cli.terminal import Terminal

    if prompt is not None and prompt_option is not None:
        raise UsageError("PROMPT and --prompt are the same thing", hint="give one of them")
    if raw and system is not None:
        raise UsageError("--raw has no place for a --system message", hint="put it into the prompt, or drop --raw")
    if max_tokens == 0:
        raise UsageError("--max-tokens 0 would say nothing", hint="1 or more, or -1 for as many as fit")
    if grammar is not None and json_schema is not None:
        raise UsageError("--grammar and --json-schema both say what to follow", hint="give one of them")
    if logprobs is not None and not json:
        raise UsageError("--logprobs needs --json, where they are shown")
    terminal = Terminal.of_process(quiet=quiet)
    wishes = Wishes(
        chain=sampling.to_given(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            typical_p=typical_p,
            top_n_sigma=top_n_sigma,
            xtc_probability=xtc_probability,
            xtc_threshold=xtc_threshold,
            samplers=samplers,
            logit_bias=logit_bias,
            repeat_last_n=repeat_last_n,
            repeat_penalty=repeat_penalty,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            dry_multiplier=dry_multiplier,
            dry_base=dry_base,
            dry_allowed_length=dry_allowed_length,
            dry_penalty_last_n=dry_penalty_last_n,
            dry_sequence_breaker=dry_sequence_breaker,
        ),
        rule=rule,
        seed=seed if seed >= 0 else secrets.randbelow(2**32),
        draft_tokens=draft_tokens,
        draft_temperature=draft_temperature,
        max_tokens=max_tokens if max_tokens > 0 else None,
        stops=tuple(stop or ()),
        grammar=grammar,
        json_schema=json_schema,
        logprobs=logprobs,
    )
    settings = ModelSettings(
        threads=threads,
        draft_threads=draft_threads,
        batch_size=batch_size,
        ctx_size=ctx_size,
        gpu_layers=gpu_layers,
        draft_gpu_layers=draft_gpu_layers,
        flash_attn=flash_attn,
        cache_type_k=cache_type_k,
        cache_type_v=cache_type_v,
        recalibrate=recalibrate,
        lora=options.to_adapters("--lora", lora),
        draft_lora=options.to_adapters("--draft-lora", draft_lora),
    )
    text = read_prompt(prompt if prompt is not None else prompt_option, file, terminal)
    if not raw and not text.strip():
        raise UsageError("the prompt is empty", hint="--raw continues even from nothing, where the model can")
    chosen = choose_pair(pair, target, draft, config)
    if memory is not None and "lookup" not in chosen.drafters:
        raise UsageError("--memory is what lookup reads", hint="use -d lookup, or a chain such as -d lookup,FILE")
    question = Question(chosen, settings, wishes, text, system, raw, memory)
    return answer(question, terminal, OutputOptions(json, stats, color_tokens, verbose))


def choose_pair(name: str | None, target: Path | None, draft: str | None, config: Path | None) -> "Pair":
    """The pair that the options stand for: files given by hand, or one of models.toml with another draft.

    Raises:
        UsageError: the options contradict each other, or name no pair.
    """
    from specdec_cli.catalog import Pair, expanded, find_pair, to_draft

    given = None if draft is None else to_draft(draft, Path())
    if target is not None:
        if name is not None:
            raise UsageError("--pair and --target both name the big model", hint="give one of them")
        if config is not None:
            raise UsageError("--config is about pairs, and --target names a file", hint="give one of them")
        return Pair(expanded(target), "lookup" if given is None else given)
    return find_pair(name, config, given)
