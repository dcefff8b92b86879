"""Loading a pair: its models, the draft first, and all that is read with them before the first answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_cli.catalog import Pair, PredictedText
from specdec_cli.core.ngrams import NgramTable
from specdec_cli.drafting import Translation, read_prediction, read_tables, to_translation
from specdec_cli.llama.devices import devices
from specdec_cli.llama.gguf import read_vocabulary
from specdec_cli.llama.interrupt import Interrupt
from specdec_cli.llama.placement import Placement
from specdec_cli.llama.token_texts import TokenTexts
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.llama.weights import Weights, load_weights
from specdec_cli.llama.workers import Workers
from specdec_cli.placing import Plan, make_plan
from specdec_cli.sampling_settings import read_brought
from specdec_cli.settings import Listener, ModelSettings
from specdec_cli.vocabulary import SAMPLE, Overlap, Vocabulary, find_overlap, first_difference


@dataclass(frozen=True, slots=True)
class Loaded:
    """A pair in memory. `brought` are the sampling settings of the target's file; texts and tables are by their files.

    `predictions` are in the target's tokens. `translation` is None for models of one vocabulary. The `workers` that
    hold layers, as `plan` says, are connected.
    """

    target: Weights
    draft: Weights | None
    tokenizer: Tokenizer
    texts: TokenTexts
    brought: Mapping[str, Any]
    predictions: Mapping[Path, Sequence[int]]
    tables: Mapping[Path, NgramTable]
    translation: Translation | None
    plan: Plan
    workers: Workers

    @property
    def weights(self) -> tuple[Weights, ...]:
        """Those of both models, or of the only one."""
        return (self.target,) if self.draft is None else (self.draft, self.target)

    def close(self) -> None:
        """Free both models and leave the workers; what was opened on the models must be closed first."""
        for weights in self.weights:
            weights.close()
        self.workers.close()


def load_pair(pair: Pair, settings: ModelSettings, interrupt: Interrupt, listener: Listener) -> Loaded:
    """Read every small file first, then the draft, whose faults should not cost the minutes that a target takes.

    Raises:
        UsageError: a text or a table cannot be used, or a device is not there.
        ModelError: a model or a worker cannot be used, or the two models do not fit.
        KeyboardInterrupt: Ctrl-C while loading.
    """
    vocabulary = read_vocabulary(pair.target, "target")
    brought, ignored = read_brought(pair.target, "target")
    for complaint in ignored:
        listener.notice(complaint)
    predicted = [each.path for each in pair.drafters if isinstance(each, PredictedText)]
    predictions = {path: read_prediction(path) for path in predicted}
    tables = read_tables(pair.drafters, vocabulary)
    overlap = None if pair.draft_model is None else _overlap(vocabulary, pair.draft_model)
    with _Loading(settings, interrupt, listener) as loading:
        plan = make_plan(pair, settings, [*devices(), *loading.workers.devices])
        if plan.notice:
            listener.notice(plan.notice)
        draft = None if pair.draft_model is None else loading.load(pair.draft_model, "draft", plan.draft)
        target = loading.load(pair.target, "target", plan.target)
        tokenizer, texts = Tokenizer(target), TokenTexts(target)
        translation = None
        if overlap is not None and draft is not None:
            translation = to_translation(overlap, tokenizer, draft)
            listener.notice(translation.overlap.notice(tokenizer.encode(SAMPLE)))
        inside = {path: texts.inside(text) for path, text in predictions.items()}
        return Loaded(
            target, draft, tokenizer, texts, brought, inside, tables, translation, plan=plan, workers=loading.workers
        )


def _overlap(target: Vocabulary, draft: Path) -> Overlap | None:
    theirs = read_vocabulary(draft, "draft")
    return find_overlap(target, theirs) if first_difference(target, theirs) else None


class _Loading:
    """Connects to workers and loads models, and lets all of them go if loading does not come to its end."""

    def __init__(self, settings: ModelSettings, interrupt: Interrupt, listener: Listener) -> None:
        self._settings = settings
        self._interrupt = interrupt
        self._listener = listener
        self._weights: list[Weights] = []
        self.workers = Workers(settings.placing.rpc or (), check=interrupt.check)

    def load(self, path: Path, role: str, placement: Placement) -> Weights:
        settings = self._settings
        weights = load_weights(
            path,
            role,
            placement=placement,
            interrupt=self._interrupt,
            on_progress=lambda share: self._listener.progress(f"loading the {role}", share),
            lora=settings.lora if role == "target" else settings.draft_lora,
        )
        self._weights.append(weights)
        return weights

    def __enter__(self) -> _Loading:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for weights in self._weights:
                weights.close()
            self.workers.close()
