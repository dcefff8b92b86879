"""Options that several commands take together, each group a value that makes what the engine reads."""

import secrets
from collections.abc import Callable
from dataclasses import MISSING, Field, asdict, dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_type_hints

from specdec_cli.commands import options
from specdec_cli.commands import sampling_options as sampling
from specdec_cli.errors import UsageError

if TYPE_CHECKING:
    from specdec_cli.catalog import Pair
    from specdec_cli.question import Wishes
    from specdec_cli.settings import ModelSettings, Placing

NOT_OF_THE_CHAIN = ("draft_tokens", "max_tokens", "stop", "rule", "seed", "draft_temperature", "grammar", "json_schema")
"""Fields of `AnswerOptions` that say something else than which sampler does what."""


def grouped(command: Callable[..., int]) -> Callable[..., int]:
    """`command` as typer can read it: a parameter that is a group of options becomes those options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def run(**given: Any) -> int:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        return command(**given)

    parameters: list[Parameter] = []
    for each in signature(command).parameters.values():
        group = groups.get(each.name)
        own = each.replace(annotation=hints[each.name], kind=Parameter.KEYWORD_ONLY)
        parameters += [own] if group is None else [_to_parameter(one) for one in fields(group)]
    run.__dict__["__signature__"] = Signature(parameters)
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _to_parameter(field: "Field[Any]") -> Parameter:
    default = Parameter.empty if field.default is MISSING else field.default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, annotation=field.type, default=default)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """What the user says of an answer: what may change from one answer to the next."""

    max_tokens: options.MaxTokens = -1
    stop: options.Stop = None
    draft_tokens: options.DraftTokens = None
    rule: sampling.Rule = None
    seed: sampling.Seed = -1
    temperature: sampling.Temperature = None
    draft_temperature: sampling.DraftTemperature = None
    top_k: sampling.TopK = None
    top_p: sampling.TopP = None
    min_p: sampling.MinP = None
    typical_p: sampling.TypicalP = None
    top_n_sigma: sampling.TopNSigma = None
    xtc_probability: sampling.XtcProbability = None
    xtc_threshold: sampling.XtcThreshold = None
    samplers: sampling.Samplers = None
    logit_bias: sampling.LogitBias = None
    grammar: sampling.Grammar = None
    json_schema: sampling.JsonSchema = None
    repeat_last_n: sampling.RepeatLastN = None
    repeat_penalty: sampling.RepeatPenalty = None
    presence_penalty: sampling.PresencePenalty = None
    frequency_penalty: sampling.FrequencyPenalty = None
    dry_multiplier: sampling.DryMultiplier = None
    dry_base: sampling.DryBase = None
    dry_allowed_length: sampling.DryAllowedLength = None
    dry_penalty_last_n: sampling.DryPenaltyLastN = None
    dry_sequence_breaker: sampling.DrySequenceBreaker = None

    def seeded(self) -> Self:
        """The same with a seed: one that is drawn now, if none is given."""
        return self if self.seed >= 0 else replace(self, seed=secrets.randbelow(2**32))

    def to_wishes(self, logprobs: int | None = None) -> "Wishes":
        """The wishes that these options stand for; they have a seed.

        Raises:
            UsageError: options contradict each other, or one of them says nothing.
        """
        from specdec_cli.question import Wishes

        if self.max_tokens == 0:
            raise UsageError("--max-tokens 0 would say nothing", hint="1 or more, or -1 for as many as fit")
        if self.grammar is not None and self.json_schema is not None:
            raise UsageError("--grammar and --json-schema both say what to follow", hint="give one of them")
        chain = {name: value for name, value in asdict(self).items() if name not in NOT_OF_THE_CHAIN}
        return Wishes(
            chain=sampling.to_given(**chain),
            rule=self.rule,
            seed=self.seeded().seed,
            draft_tokens=self.draft_tokens,
            draft_temperature=self.draft_temperature,
            max_tokens=self.max_tokens if self.max_tokens > 0 else None,
            stops=tuple(self.stop or ()),
            grammar=self.grammar,
            json_schema=self.json_schema,
            logprobs=logprobs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacingOptions:
    """Where the models are asked to go."""

    rpc: options.Rpc = None
    device: options.Device = None
    draft_device: options.DraftDevice = None
    gpu_layers: options.GpuLayers = None
    draft_gpu_layers: options.DraftGpuLayers = None
    tensor_split: options.TensorSplit = None
    split_mode: options.SplitMode = None
    main_gpu: options.MainGpu = None

    def to_placing(self) -> "Placing":
        """What these options stand for.

        Raises:
            UsageError: one of them cannot be read.
        """
        from specdec_cli.endpoints import to_endpoints
        from specdec_cli.settings import ModelPlacing, Placing

        device = options.to_names("--device", self.device)
        draft_device = options.to_names("--draft-device", self.draft_device)
        shares = options.to_shares(self.tensor_split)
        return Placing(
            rpc=None if self.rpc is None else to_endpoints(self.rpc),
            target=ModelPlacing(device, self.gpu_layers, shares, self.split_mode, self.main_gpu),
            draft=ModelPlacing(draft_device, self.draft_gpu_layers),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions(PlacingOptions):
    """How the models are loaded: what holds as long as they are."""

    lora: options.Lora = None
    draft_lora: options.DraftLora = None
    ctx_size: options.CtxSize = None
    threads: options.Threads = None
    draft_threads: options.DraftThreads = None
    batch_size: options.BatchSize = None
    recalibrate: options.Recalibrate = False
    flash_attn: options.FlashAttn = "auto"
    cache_type_k: options.CacheTypeK = "f16"
    cache_type_v: options.CacheTypeV = "f16"

    def to_settings(self) -> "ModelSettings":
        """The settings of a session.

        Raises:
            UsageError: the scale of an adapter is out of range, or a device or a worker cannot be read.
        """
        from specdec_cli.settings import ModelSettings

        own = {each.name for each in fields(self)} - {each.name for each in fields(PlacingOptions)}
        given = {name: getattr(self, name) for name in own}
        given |= {"lora": options.to_adapters("--lora", self.lora)}
        given |= {"draft_lora": options.to_adapters("--draft-lora", self.draft_lora)}
        return ModelSettings(placing=self.to_placing(), **given)


def check_together(prompt: str | None, prompt_option: str | None, *, json: bool, logprobs: int | None) -> None:
    """Refuse options that exclude or need each other.

    Raises:
        UsageError: some of these do.
    """
    if prompt is not None and prompt_option is not None:
        raise UsageError("PROMPT and --prompt are the same thing", hint="give one of them")
    if logprobs is not None and not json:
        raise UsageError("--logprobs needs --json, where they are shown")


def check_memory(memory: Path | None, pair: "Pair", *, with_prompt: bool) -> None:
    """Refuse a memory that no drafter of `pair` reads, and prompts that have none to go into.

    Raises:
        UsageError: it is one.
    """
    if with_prompt and memory is None:
        raise UsageError("--memory-prompt needs --memory, where it is kept")
    if memory is not None and "lookup" not in pair.drafters:
        raise UsageError("--memory is what lookup reads", hint="use -d lookup, or a chain such as -d lookup,FILE")
