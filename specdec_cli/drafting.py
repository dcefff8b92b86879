"""Who drafts for a loaded pair: a model (of any vocabulary), lookup, a predicted text, a table, or a chain of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specdec_cli.catalog import NgramFile, PredictedText, Source
from specdec_cli.core.draft_temperature import to_draft_chain
from specdec_cli.core.ngrams import NgramTable
from specdec_cli.core.sampling.chain import SamplingChain
from specdec_cli.core.translation import Translator
from specdec_cli.drafters.chain import ChainDrafter, ExhaustibleDrafter
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.drafters.table import FREE_FROM, TableDrafter
from specdec_cli.drafters.text import TextDrafter
from specdec_cli.drafters.translated import TranslatedDrafter
from specdec_cli.errors import UsageError
from specdec_cli.files import read_file
from specdec_cli.generation import Request
from specdec_cli.llama.context import Context
from specdec_cli.llama.token_texts import TokenTexts
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.llama.weights import Weights
from specdec_cli.ngram_file import read_ngrams
from specdec_cli.vocabulary import Ends, Overlap, Vocabulary


@dataclass(frozen=True, slots=True)
class Translation:
    """Between a target and a draft of different vocabularies."""

    translator: Translator
    overlap: Overlap


@dataclass(frozen=True, slots=True)
class Material:
    """What drafters know, in the target's tokens: files that predict the answer, tables, and remembered answers.

    `vocabulary` is the number of the target's ids, `step` the seconds of its plain step, None if nobody knows.
    """

    predictions: Mapping[Path, Sequence[int]]
    tables: Mapping[Path, NgramTable]
    vocabulary: int
    remembered: Sequence[Sequence[int]] = ()
    step: float | None = None


@dataclass(frozen=True, slots=True)
class DraftModel:
    """A draft model for one answer. `shared` is how many ids it has in common with a target of its vocabulary."""

    context: Context
    shared: int
    target: Weights
    translation: Translation | None


def open_drafter(
    sources: Sequence[Source], request: Request, material: Material, model: DraftModel | None
) -> ExhaustibleDrafter:
    """The drafter of one answer: the only one of `sources`, or a chain of them."""
    drafters = [_open_one(source, request, material, model) for source in sources]
    return drafters[0] if len(drafters) == 1 else ChainDrafter(drafters)


def _open_one(
    source: Source, request: Request, material: Material, model: DraftModel | None
) -> ModelDrafter | TranslatedDrafter | LookupDrafter | TextDrafter:
    if source == "lookup":
        return LookupDrafter(material.remembered)
    if isinstance(source, PredictedText):
        return TextDrafter(material.predictions[source.path])
    chain = to_draft_chain(request.chain, request.draft_temperature or "auto")
    if isinstance(source, NgramFile):
        is_free = material.step is None or material.step >= FREE_FROM
        return TableDrafter(material.tables[source.path], chain, vocabulary=material.vocabulary, is_free=is_free)
    assert model is not None
    return _open_model(model, chain)


def _open_model(model: DraftModel, chain: SamplingChain) -> ModelDrafter | TranslatedDrafter:
    context, translation = model.context, model.translation
    if translation is None:
        return ModelDrafter(context, chain, vocabulary=model.shared, capacity=context.size)
    return TranslatedDrafter(
        context,
        chain,
        translation.translator,
        to_target=translation.overlap.to_target,
        vocabulary=model.target.vocabulary_size,
        capacity=context.size,
    )


def read_prediction(path: Path) -> bytes:
    """A file that predicts the answer.

    Raises:
        UsageError: it cannot be read, or is empty.
    """
    try:
        text = read_file(path)
    except OSError as error:
        hint = "give a text like the answer"
        raise UsageError(f"--draft text:{path} cannot be read: {error.strerror}", hint=hint) from None
    if not text:
        raise UsageError(f"--draft text:{path} is empty", hint="give a text like the answer")
    return text.decode("utf-8", "replace").encode()


def read_tables(sources: Sequence[Source], target: Vocabulary) -> dict[Path, NgramTable]:
    """The tables of n-grams among `sources`.

    Raises:
        UsageError: one cannot be read, or is about another vocabulary than the target's.
    """
    tables: dict[Path, NgramTable] = {}
    for path in [each.path for each in sources if isinstance(each, NgramFile)]:
        tables[path], fingerprint = read_ngrams(path)
        if fingerprint != target.fingerprint:
            raise UsageError(
                f"table {path} is about another vocabulary than that of target {target.source}",
                hint="specdec table build makes one for this target",
            )
    return tables


def to_translation(overlap: Overlap, tokenizer: Tokenizer, draft: Weights) -> Translation:
    """`overlap` with the ends of both models, and all that reads the target's tokens to the draft."""
    theirs = Tokenizer(draft)
    ends = Ends(tokenizer.end_of_turn, tokenizer.eos), Ends(theirs.end_of_turn, theirs.eos)
    whole = overlap.with_ends(*ends)
    translator = Translator(
        whole.to_draft,
        whole.byte_tokens,
        whole.names,
        tokenizer.piece,
        TokenTexts(draft).inside,
        (tokenizer.beginning, theirs.beginning),
    )
    return Translation(translator, whole)
