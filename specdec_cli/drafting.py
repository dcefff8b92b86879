"""How a loaded pair drafts: with which model, lookup or nothing, and in whose vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from specdec_cli.core.draft_temperature import to_draft_chain
from specdec_cli.core.translation import Translator
from specdec_cli.drafters.lookup import LookupDrafter
from specdec_cli.drafters.model import ModelDrafter
from specdec_cli.drafters.translated import TranslatedDrafter
from specdec_cli.generation import AnyDrafter, Request
from specdec_cli.llama.context import Context
from specdec_cli.llama.token_texts import TokenTexts
from specdec_cli.llama.tokenizer import Tokenizer
from specdec_cli.llama.weights import Weights
from specdec_cli.vocabulary import Ends, Overlap


@dataclass(frozen=True, slots=True)
class Translation:
    """Between a target and a draft of different vocabularies."""

    translator: Translator
    overlap: Overlap


def open_drafter(
    request: Request, target: Weights, draft: Context | None, *, translation: Translation | None, shared: int
) -> AnyDrafter:
    """The drafter of one answer; lookup without the context of a `draft` model.

    Of the ids of a draft of the target's vocabulary both know the first `shared`.
    """
    if draft is None:
        return LookupDrafter()
    chain = to_draft_chain(request.chain, request.draft_temperature)
    if translation is None:
        return ModelDrafter(draft, chain, vocabulary=shared, capacity=draft.size)
    return TranslatedDrafter(
        draft,
        chain,
        translation.translator,
        to_target=translation.overlap.to_target,
        vocabulary=target.vocabulary_size,
        capacity=draft.size,
    )


def to_translation(overlap: Overlap, tokenizer: Tokenizer, draft: Weights) -> Translation:
    """`overlap` with the ends of both models, and all that reads the target's tokens to the draft."""
    theirs = Tokenizer(draft)
    whole = overlap.with_ends(
        Ends(tokenizer.end_of_turn, tokenizer.eos),
        Ends(theirs.end_of_turn, theirs.eos),
    )
    translator = Translator(
        whole.to_draft,
        whole.byte_tokens,
        whole.names,
        tokenizer.piece,
        TokenTexts(draft).inside,
        (tokenizer.beginning, theirs.beginning),
    )
    return Translation(translator, whole)
